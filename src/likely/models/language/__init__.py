"""Models of text: sentences of tokens, with exact evidence."""
