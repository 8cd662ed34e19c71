"""Modified Kneser-Ney 5-grams of WikiText-2: estimation beside KenLM's lmplz and NLTK, scores beside KenLM's module.

KenLM takes no `<unk>` in its training text, so the word is `<rare>` for all of them. Perplexity counts every token and
`</s>`, not `<s>`, for all of them as well. lmplz writes its model as ARPA text, which is part of its time; ours is
timed without and with that. It does not come with KenLM's Python module: it is run if `LMPLZ` names it, or if it is on
the path (built by `cmake` from github.com/kpu/kenlm with Boost); else what KenLM's module says of our ARPA file stands
in for its perplexity, and no ratio is given.

NLTK has Kneser-Ney with one discount only, counts when it is fitted, and computes its smoothing when it is asked for a
probability; so what is compared is the way from a text to the log-probability of a few hundred new tokens, on a part of
the text, since the whole would take it hours.
"""

from __future__ import annotations

import math
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import likely
from benchmarks import data, peers
from benchmarks.outcome import Line, Outcome
from benchmarks.timing import alone, in_turns, in_words, stopwatch

ORDER = 5
NLTK_BAR, SCORE_BAR, PERPLEXITY_BAR = 100.0, 3.0, 0.1
_MILLION = 1_000_000


def run(*, small: bool, seed: int) -> Outcome:
    peers.prepare()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        dataset = data.load("wikitext2")
        n_lines = 300 if small else None
        paths = {part: _write(place / f"{part}.txt", getattr(dataset, part), n_lines) for part in ("train", "test")}
        estimation, figures, model = _estimation(paths, place, n_rounds=1 if small else 3)
        scoring, more = _scoring(model, place, _lines(paths["test"]), 10_000 if small else _MILLION, 1 if small else 3)
        beside_nltk, most = _beside_nltk(paths, place, *((50, 5) if small else (1000, 300)))
    versions = more.pop("versions") | most.pop("versions")
    return Outcome([estimation, scoring, beside_nltk], figures | more | most, versions)


def _estimation(paths: dict[str, Path], place: Path, n_rounds: int) -> tuple[Line, dict[str, Any], Any]:
    lmplz = os.environ.get("LMPLZ") or shutil.which("lmplz") or shutil.which("lmplz", path=peers.ENVIRONMENT / "bin")
    arpa = {"ours": str(place / "ours.arpa"), "lmplz": str(place / "lmplz.arpa")}

    def fit() -> Any:
        return likely.NGram(ORDER, random_state=0).fit(paths["train"])

    def build() -> None:
        command = [
            lmplz,
            "-o",
            str(ORDER),
            "-S",
            "2G",
            "-T",
            str(place),
            "--discount_fallback",
            "--arpa",
            arpa["lmplz"],
        ]
        with open(paths["train"]) as text:
            subprocess.run(command, stdin=text, stderr=subprocess.DEVNULL, check=True)

    ours, peer = in_turns(fit, build, n_rounds=n_rounds) if lmplz else (alone(fit, n_rounds=n_rounds), None)
    model = ours.result
    write_seconds, _ = stopwatch(lambda: model.save_arpa(arpa["ours"]))
    models = {name: arpa[name] for name in ("ours", "lmplz") if name == "ours" or lmplz}
    answer = peers.run("peer_kenlm", models=models, text=str(paths["test"]), n_rounds=1)
    perplexity = model.perplexity(paths["test"])
    lines = _lines(paths["test"])
    theirs = {name: 10 ** (-sum(s) / perplexity.n_tokens) for name, s in answer["scores"].items()}
    apart = np.abs(model.score_samples(lines) / math.log(10) - answer["scores"]["ours"]).max()
    read = likely.NGram.load_arpa(arpa["lmplz"]).perplexity(paths["test"]).value if lmplz else None
    peer_perplexity = theirs.get("lmplz", theirs["ours"])
    line = Line(
        what=f"modified Kneser-Ney {ORDER}-gram, WikiText-2, estimation, beside KenLM's lmplz",
        ours=f"{in_words(ours.median)}, {in_words(ours.median + write_seconds)} with ARPA",
        peer=in_words(peer.median) if peer else "lmplz is not here",
        ratio=peer.median / ours.median if peer else None,
        quality=f"test perplexity: ours {perplexity.value:.3f}, KenLM {peer_perplexity:.3f}",
        bar=f"perplexity to {PERPLEXITY_BAR:g}",
        reached=bool(abs(perplexity.value - peer_perplexity) <= PERPLEXITY_BAR),
    )
    figures = {
        "fit_seconds": {"ours": ours.to_json(), "lmplz": peer.to_json() if peer else None, "arpa": write_seconds},
        "perplexity": {"ours": perplexity.value, "kenlm": theirs, "ours_reading_lmplz": read},
        "largest_log10_difference_of_a_sentence": float(apart),
        "convention": str(perplexity),
        "n_parameters": model.n_parameters_,
    }
    return line, figures, model


def _scoring(model: Any, place: Path, lines: list[str], n_tokens: int, n_rounds: int) -> tuple[Line, dict[str, Any]]:
    """A batch of held-out lines, from text to the log-probability of each, beside `kenlm.Model.score` of each."""
    sizes = np.array([len(line.split()) + 1 for line in lines])
    batch = (lines * (n_tokens // int(sizes.sum()) + 1))[: int(np.searchsorted(np.cumsum(
        np.tile(sizes, n_tokens // int(sizes.sum()) + 1)), n_tokens))]  # fmt: skip
    text = place / "batch.txt"
    text.write_text("\n".join(batch) + "\n")
    answers = []

    def peer() -> None:
        answers.append(peers.run("peer_kenlm", models={"ours": str(place / "ours.arpa")}, text=str(text), n_rounds=2))

    ours, _ = in_turns(lambda: model.score_samples(batch), peer, n_rounds=n_rounds)
    encoded = model._encoded(batch)
    from_ids = alone(lambda: model._token_scores(encoded), n_rounds=n_rounds)
    theirs = min(min(answer["seconds"]["ours"]) for answer in answers)
    best = min(ours.seconds)
    million = len(encoded.tokens) / _MILLION
    line = Line(
        what=f"scores of {len(encoded.tokens):,} tokens in a batch, beside the kenlm module",
        ours=f"{million / best:.1f}M tokens/s from text, {million / min(from_ids.seconds):.1f}M from ids",
        peer=f"{million / theirs:.1f}M tokens/s from text",
        ratio=theirs / best,
        quality="the same scores",
        bar=f"≥ {SCORE_BAR:g}×",
        reached=bool(theirs / best >= SCORE_BAR),
    )
    kept = {"ours": ours.to_json(), "ours_from_ids": from_ids.to_json(), "kenlm": [a["seconds"] for a in answers]}
    return line, {"score_seconds": kept, "versions": answers[-1]["versions"]}


def _beside_nltk(paths: dict[str, Path], place: Path, n_lines: int, n_tokens: int) -> tuple[Line, dict[str, Any]]:
    part, new = _lines(paths["train"])[:n_lines], _lines(paths["test"])[:20]
    (place / "part.txt").write_text("\n".join(part) + "\n")
    answer = peers.run(
        "peer_nltk", train=str(place / "part.txt"), test=str(paths["test"]), order=ORDER, n_tokens=n_tokens
    )

    def ours() -> None:
        likely.NGram(ORDER, "kneser_ney").fit(part).token_scores(new)

    timing = alone(ours, n_rounds=3)
    theirs = answer["fit_seconds"] + answer["score_seconds"]
    ratio, fits = theirs / timing.median, answer["fit_seconds"] / timing.median
    line = Line(
        what=f"Kneser-Ney {ORDER}-gram of {n_lines:,} lines to log p of {n_tokens} new tokens, beside NLTK",
        ours=in_words(timing.median),
        peer=f"{in_words(theirs)}, {in_words(answer['fit_seconds'])} of it to count",
        ratio=ratio,
        quality=f"beside its counting alone {fits:.0f}×",
        bar=f"≥ {NLTK_BAR:g}×",
        reached=bool(ratio >= NLTK_BAR),
    )
    return line, {"nltk": answer, "seconds_beside_nltk": timing.to_json(), "versions": answer["versions"]}


def _write(path: Path, corpus: Any, n_lines: int | None) -> Path:
    """A corpus as a file that KenLM takes."""
    lines = [" ".join("<rare>" if token == "<unk>" else token for token in sentence) for sentence in corpus]
    path.write_text("\n".join(lines[:n_lines]) + "\n")
    return path


def _lines(path: Path) -> list[str]:
    return path.read_text().split("\n")[:-1]
