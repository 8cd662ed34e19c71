"""Text as numbers: corpora, vocabularies, token ids."""
