import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import likely
from likely import SemiSupervisedVAE
from likely.columns import Cells
from likely.objectives.semi_supervised import bounds_by_label, unlabelled_bound
from tests.models.latent.variational.deep_latent_checks import check_unlabelled_bound, labelled_case
from tests.models.latent.variational.vae_checks import check_evidence_by_quadrature


def fitted(rows, module):
    """A model that holds the given module, in the rows' own units, as a fit would leave it."""
    model = SemiSupervisedVAE(2, hidden=(), n_importance=2000)
    model._read_new(rows)
    model.cells_ = Cells.plain(model.columns_)
    model.classes_, model.seed_, model.params_ = [0, 1, 2], 0, module
    return model


@pytest.fixture
def case(x64, global_random_seed):
    module, rows, log_joint = labelled_case(global_random_seed)
    return fitted(rows, module), rows, log_joint


def test_evidence_is_the_sum_over_labels(case):
    model, rows, log_joint = case
    check_evidence_by_quadrature(model.evidence(rows), np.logaddexp.reduce(log_joint(rows), axis=1))


def test_conditional_is_the_mixture_over_labels(case, global_random_seed):
    """Of the mixture of Gaussians that x is: P(y | the rest) times the Gaussian's own conditional mean."""
    model, rows, log_joint = case
    holes = rows.copy()
    holes[:, 0] = np.nan
    grid = np.linspace(-25, 25, 4001)
    mean, spread = [], []
    for row in rows:
        table = np.broadcast_to(row, (len(grid), len(row))).copy()
        table[:, 0] = grid
        weight = np.exp(np.logaddexp.reduce(log_joint(table), axis=1))
        weight /= weight.sum()
        mean.append(weight @ grid)
        spread.append(np.sqrt(weight @ grid**2 - mean[-1] ** 2))
    conditional = model.condition(holes)
    # 2000 samples, worth a quarter of it after weighing
    assert (np.abs(conditional.mean()[:, 0] - mean) < 6 * np.array(spread) / np.sqrt(500)).all()
    draws = np.stack(conditional.sample(200, random_state=global_random_seed))[:, :, 0]
    error = np.array(spread) * np.sqrt(1 / 200 + 1 / 500)
    assert (np.abs(draws.mean(axis=0) - mean) < 6 * error).all()


def test_the_bounds_stay_below(case, global_random_seed):
    model, rows, log_joint = case
    noise = jax.random.normal(jax.random.key(global_random_seed), (len(rows), 2000, 2))
    x = jnp.asarray(rows)
    bounds = np.asarray(jax.jit(lambda x, e: bounds_by_label(model.params_, x, None, e))(x, noise))
    exact = log_joint(rows)
    # the spread of a log-likelihood of 4 cells over samples of q is a few nats at most
    assert (bounds < exact + 5 * 3 / np.sqrt(2000)).all()
    assert (bounds > exact - 5).all()


def test_unlabelled_bound_against_enumeration(x64):
    check_unlabelled_bound(unlabelled_bound)


def test_samples_of_a_class_have_its_mean(case, global_random_seed):
    model, _, _ = case
    for label in (0, 2):
        module = model.params_.given(label)
        draws = model.sample_class(label, 4000, random_state=global_random_seed)
        expected = np.asarray(module.decoder.layers[0].bias)
        assert (np.abs(draws.mean(axis=0) - expected) < 5 * draws.std(axis=0) / np.sqrt(4000)).all()


# ------------------------------------------------------------------ learning and use
@pytest.fixture(scope="module")
def digits():
    return likely.datasets.load("digits")


@pytest.fixture(scope="module")
def learned(digits):
    """On digits 0 to 2: every tenth row has a label, and some cells are unobserved."""
    kept = digits.labels["train"] < 3
    labels = np.array([str(label) for label in digits.labels["train"][kept]], dtype=object)
    labels[np.arange(len(labels)) % 10 > 0] = None
    rows = digits.train[kept]
    rows[::7, ::5] = np.nan
    hyper = {"hidden": (16,), "batch_size": 20, "n_epochs": 60, "label_warmup": 20, "n_importance": 16, "n_refine": 0}
    return SemiSupervisedVAE(4, **hyper, random_state=0).fit(rows, labels)


def test_learns_from_few_labels(learned, digits):
    """About 30 labels."""
    kept = digits.labels["test"] < 3
    rows, truth = digits.test[kept], digits.labels["test"][kept].astype(str)
    assert learned.accuracy(rows, truth) > 0.85
    np.testing.assert_array_equal((learned.predict(rows) == truth).mean(), learned.accuracy(rows, truth))
    np.testing.assert_allclose(learned.predict_proba(rows).sum(axis=1), 1, rtol=1e-5)


@pytest.mark.filterwarnings("ignore::likely.EvidenceWarning")  # A few weights decide, and it says so.
def test_keeps_the_contract(learned, digits, tmp_path):
    rows = digits.test[:20].copy()
    rows[:, ::3] = np.nan  # in every row: one program for all
    rows[0] = np.nan
    assert learned.evidence(rows).kind == "lower"
    assert set(np.unique(learned.impute(rows))) <= {0.0, 1.0}
    assert learned.transform(rows).shape == (20, 4)
    assert learned.denoise(rows).shape == rows.shape
    assert learned.sample(3).shape == learned.sample_class("2", 3).shape == (3, 64)
    with pytest.raises(AttributeError, match="SemiSupervisedVAE has no inverse_transform: a row is made of its code"):
        learned.inverse_transform(np.zeros((1, 4)))
    learned.save(tmp_path / "model.likely")
    again = likely.load(tmp_path / "model.likely")
    np.testing.assert_array_equal(again.predict(rows), learned.predict(rows))
    np.testing.assert_array_equal(again.score_samples(rows), learned.score_samples(rows))
    np.testing.assert_array_equal(learned.score_samples(rows[3:5]), learned.score_samples(rows)[3:5])


def test_labels_that_fit_did_not_see_are_named(learned, digits):
    with pytest.raises(ValueError, match=r"no training row has the label 'x': the labels are '0', '1', '2'"):
        learned.sample_class("x")
    with pytest.raises(ValueError, match="no training row has the label 'eleven'"):
        learned.accuracy(digits.test[:1], ["eleven"])
    with pytest.raises(ValueError, match="`y` must have a label for each of the 2 rows of X, got 1"):
        learned.accuracy(digits.test[:2], ["1"])


@pytest.mark.parametrize("verb", ["predict", "predict_proba", "predict_log_proba"])
def test_before_the_fit_it_says_so(verb):
    with pytest.raises(NotFittedError):
        getattr(SemiSupervisedVAE(), verb)(np.eye(4))
    for asked in (SemiSupervisedVAE().label_evidence, SemiSupervisedVAE().accuracy):
        with pytest.raises(NotFittedError):
            asked(np.eye(4), [0, 1, 0, 1])


def test_fit_needs_labels():
    with pytest.raises(ValueError, match="SemiSupervisedVAE requires y to be passed"):
        SemiSupervisedVAE().fit(np.eye(4))
    with pytest.raises(ValueError, match="needs labelled rows of at least two classes"):
        SemiSupervisedVAE().fit(np.eye(4), [-1, -1, 3, 3])
