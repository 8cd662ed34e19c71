"""WikiText-2, articles of Wikipedia in three parts, from the folder that `LIKELY_DATA` names."""

from __future__ import annotations

from likely.datasets.folder import find
from likely.datasets.text.corpus import Corpus
from likely.datasets.text.text_dataset import TextDataset

WIKITEXT2_FILES = tuple(f"wikitext2/wiki.{part}.tokens" for part in ("train", "valid", "test"))


def load_wikitext2() -> TextDataset:
    """WikiText-2 (Merity et al., 2016): 2,088,628 / 217,646 / 245,569 tokens with the ends of lines, blank ones too.

    The 33,278 words that occur three times or more; the others are `<unk>` in the files already.
    """
    paths = [find(file, "wikitext2") for file in WIKITEXT2_FILES]
    names = ("train", "valid", "test")
    train, valid, test = (Corpus.from_files(p, name=f"wikitext2 {n}") for p, n in zip(paths, names, strict=True))
    return TextDataset(train, valid, test, "wikitext2")
