"""Text: corpora of sentences, vocabularies, sentences as numbers, and text in three parts."""
