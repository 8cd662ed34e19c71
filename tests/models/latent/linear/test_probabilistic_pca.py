"""ProbabilisticPCA against scikit-learn's PCA, its closed form against EM, and its limit as the noise vanishes."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.decomposition import PCA

from likely import ProbabilisticPCA


def table(seed: int, n: int = 300, noise: float = 1.0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    axes = np.linalg.qr(rng.normal(size=(6, 6)))[0] * np.array([5, 3, 2, 0.5, 0.4, 0.3])
    rows = rng.normal(size=(n, 6)) @ axes.T * 10
    return rows[:, :] + noise * rng.normal(size=(n, 6)) + 100


def peer_score(peer: PCA, rows: np.ndarray) -> np.ndarray:
    """Log density under PCA's own covariance with the maximum-likelihood 1/n in place of its 1/(n - 1)."""
    shrink = (len(rows) - 1) / len(rows)
    peer.explained_variance_ = peer.explained_variance_ * shrink
    peer.noise_variance_ = peer.noise_variance_ * shrink
    return peer.score_samples(rows)


@pytest.mark.usefixtures("x64")
def test_closed_form_is_scikit_learn_s_probabilistic_model(global_random_seed):
    rows = table(global_random_seed)
    model = ProbabilisticPCA(3).fit(rows)
    peer = PCA(3, svd_solver="full").fit(rows)
    np.testing.assert_allclose(model.score_samples(rows), peer_score(peer, rows), rtol=1e-8)
    left_out = np.linalg.eigvalsh(np.cov(rows.T, bias=True))[:3]
    np.testing.assert_allclose(model.noise_variance_, left_out.mean(), rtol=1e-8)
    np.testing.assert_allclose(model.mean_, rows.mean(axis=0), rtol=1e-10)


@pytest.mark.usefixtures("x64")
def test_em_reaches_the_closed_form(global_random_seed):
    rows = table(global_random_seed)
    closed = ProbabilisticPCA(3, solver="closed").fit(rows)
    em = ProbabilisticPCA(3, solver="em", tol=1e-14, max_iter=5000, random_state=0).fit(rows)
    assert (np.diff(em.history_["objective"]) >= -1e-9).all()
    np.testing.assert_allclose(em.score(rows), closed.score(rows), rtol=1e-8)
    np.testing.assert_allclose(em.noise_variance_, closed.noise_variance_, rtol=1e-6)
    np.testing.assert_allclose(
        em.components_, closed.components_, rtol=1e-3, atol=1e-3 * np.abs(closed.components_).max()
    )
    assert em.history_["objective"][-1] <= closed.history_["objective"][0] + 1e-10


@pytest.mark.usefixtures("x64")
def test_no_parameters_near_by_are_better(global_random_seed):
    """The closed form is a maximum: moving it in any direction lowers the likelihood."""
    from likely.models.latent.linear.em import mean_log_prob, moments

    rng = np.random.default_rng(global_random_seed)
    rows = table(global_random_seed)
    model = ProbabilisticPCA(2).fit(rows)
    given = moments(model.cells_.scaling.apply(rows, np.dtype(np.float64)))
    best = mean_log_prob(model.params_, given)
    import jax

    for _ in range(20):
        moved = jax.tree.map(lambda leaf: leaf * (1 + 1e-3 * rng.normal(size=leaf.shape)), model.params_)
        assert mean_log_prob(moved, given) <= best + 1e-12


@pytest.mark.usefixtures("x64")
def test_becomes_pca_as_the_noise_vanishes(global_random_seed):
    """A plane and less and less noise around it: subspace and reconstructions tend to PCA's, linearly in sigma²."""
    rng = np.random.default_rng(global_random_seed)
    plane = rng.normal(size=(200, 2)) @ rng.normal(size=(2, 5)) * 3 + 1
    noise = rng.normal(size=plane.shape)
    gaps = []
    for sigma in (1e-1, 1e-2, 1e-3):
        rows = plane + sigma * noise
        model = ProbabilisticPCA(2, min_noise=1e-12).fit(rows)
        peer = PCA(2, svd_solver="full").fit(rows)
        ours = np.linalg.qr(model.components_.T)[0]
        np.testing.assert_allclose(ours @ ours.T, peer.components_.T @ peer.components_, atol=1e-10)
        # three discarded eigenvalues of 200 rows: relative error sqrt(2 / 600), and 3 degrees of freedom fewer
        np.testing.assert_allclose(model.noise_variance_, sigma**2, rtol=5 * np.sqrt(2 / 600) + 3 / 200)
        gaps.append(np.abs(model.denoise(rows) - peer.inverse_transform(peer.transform(rows))).max())
    assert gaps[0] > 50 * gaps[1] > 2500 * gaps[2]


def test_components_are_orthogonal_falling_and_of_fixed_sign(global_random_seed):
    model = ProbabilisticPCA(3).fit(table(global_random_seed))
    gram = model.components_ @ model.components_.T
    np.testing.assert_allclose(gram, np.diag(np.diag(gram)), atol=1e-3 * gram.max())
    assert (np.diff(np.diag(gram)) <= 0).all()
    assert (model.components_[range(3), np.abs(model.components_).argmax(axis=1)] > 0).all()


def test_fits_rows_with_holes(global_random_seed):
    rows = table(global_random_seed)
    holed = rows.copy()
    hidden = np.random.default_rng(global_random_seed).random(rows.shape) < 0.2
    holed[hidden] = np.nan
    model = ProbabilisticPCA(3, tol=1e-6).fit(holed)
    assert (np.diff(model.history_["objective"]) >= -1e-9).all()
    error = np.square((model.impute(holed) - rows)[hidden]).mean()
    assert error < 0.5 * np.square((rows.mean(axis=0) - rows)[hidden]).mean()


def test_all_components_leave_the_floor_as_noise():
    rows = table(0)
    model = ProbabilisticPCA(6, min_noise=1e-4).fit(rows)
    np.testing.assert_allclose(model.noise_variance_, 1e-4 * rows.var(axis=0).mean(), rtol=1e-5)


def test_the_closed_form_refuses_holes():
    rows = table(0)
    rows[0, 0] = np.nan
    with pytest.raises(ValueError, match="needs complete rows"):
        ProbabilisticPCA(2, solver="closed").fit(rows)
    with pytest.raises(ValueError, match="must be at most n_columns"):
        ProbabilisticPCA(7).fit(rows)
