"""Mixture of 20 diagonal Gaussians, 50 iterations of EM on 20,000 MNIST digits, beside scikit-learn's.

Both start from k-means++ seeds. Columns are standardised for both, so that their guards against vanishing variances
mean about the same: scikit-learn adds `reg_covar` to every variance, ours adds `min_variance` to that of a component
of average size. Ours may stop before the last iteration, once the likelihood no longer rises in single precision; so
what is compared first is the whole fit's seconds for each iteration that was done. Then both race to one likelihood:
ours is fitted again with only as many iterations as it needs for the peer's last.
"""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

import likely
from benchmarks import data
from benchmarks.outcome import Line, Outcome
from benchmarks.timing import alone, in_turns, in_words

BAR = 4.0
GUARD = 1e-4  # variance, in units of the columns' own


def run(*, small: bool, seed: int) -> Outcome:
    train, test = data.standardised(*data.gray_mnist(small=small))
    n_components, n_iter, n_rounds = (3, 5, 1) if small else (20, 50, 5)
    schema = likely.Schema.real(train.shape[1])

    def fit_ours(max_iter: int = n_iter):
        model = likely.Mixture(
            n_components, n_init=1, max_iter=max_iter, tol=0.0, min_variance=GUARD, schema=schema, random_state=seed
        )
        return model.fit(train)

    def fit_peer():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # with tol=0 that is what is asked for
            return GaussianMixture(
                n_components,
                covariance_type="diag",
                init_params="k-means++",
                max_iter=n_iter,
                tol=0.0,
                reg_covar=GUARD,
                random_state=seed,
            ).fit(train)

    ours, peer = in_turns(fit_ours, fit_peer, n_rounds=n_rounds)
    scores = {
        who: {part: float(model.score(rows)) for part, rows in (("train", train), ("test", test))}
        for who, model in (("ours", ours.result), ("peer", peer.result))
    }
    per_iteration = [timing.median / timing.result.n_iter_ for timing in (ours, peer)]
    ratio = per_iteration[1] / per_iteration[0]
    line = Line(
        what=f"Mixture, {n_components} diagonal Gaussians, an iteration of {n_iter}",
        ours=in_words(per_iteration[0]),
        peer=in_words(per_iteration[1]),
        ratio=ratio,
        quality=f"nats a row: ours {scores['ours']['train']:.1f}, peer {scores['peer']['train']:.1f}",
        bar=f"≥ {BAR:g}×",
        reached=bool(ratio >= BAR),
    )
    curve = np.array(ours.result.history_["objective"])
    curve += scores["ours"]["train"] - curve[-1]  # in the units of the columns; each before its own step
    there = curve >= scores["peer"]["train"]
    enough = max(1, int(np.argmax(there))) if there.any() else len(curve)
    sooner = alone(lambda: fit_ours(enough), n_rounds=n_rounds)
    reached = float(sooner.result.score(train))
    race = Line(
        what="the same, the fit to the peer's likelihood",
        ours=in_words(sooner.median),
        peer=in_words(peer.median),
        ratio=peer.median / sooner.median,
        quality=f"nats a row: ours {reached:.1f} after {enough}, peer {scores['peer']['train']:.1f} after "
        f"{peer.result.n_iter_}",
    )
    figures = {
        "rows": train.shape[0],
        "columns": train.shape[1],
        "ours_seconds": ours.to_json(),
        "peer_seconds": peer.to_json(),
        "ours_iterations": ours.result.n_iter_,
        "peer_iterations": peer.result.n_iter_,
        "seconds_per_iteration": dict(zip(("ours", "peer"), per_iteration, strict=True)),
        "mean_log_prob": scores,
        "race": {"seconds": sooner.to_json(), "iterations": enough, "mean_log_prob": reached},
    }
    return Outcome([line, race], figures)
