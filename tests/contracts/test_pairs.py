"""The contract of models of pairs, p(target | input), over all that are registered."""

import jax
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import likely
from likely.contract import sequence_predictor
from likely.contract.sequence_predictor import SequencePredictor
from likely.storage import entries, registry
from tests.contracts.pair_checks import CASES, NAMES, check_evidence, check_sums_to_one, small

EVERY = pytest.mark.parametrize("name", NAMES)


@pytest.fixture(scope="module")
def fitted():
    """Models by name, fitted when first asked for."""
    known = {}

    def of(name):
        if name not in known:
            known[name] = model = small(name)
            assert model.fit(CASES[name].X, CASES[name].y) is model
        return known[name]

    return of


def as_lists(predicted):
    return [one.tolist() if isinstance(one, np.ndarray) else one for one in predicted]


def assert_same_model(one, other, case):
    """The same parameters, curves and answers, to the bit."""
    jax.tree.map(np.testing.assert_array_equal, one.params_, other.params_)
    assert one.history_["loss"] == other.history_["loss"]
    np.testing.assert_array_equal(one.log_prob(case.asked, case.answers), other.log_prob(case.asked, case.answers))
    assert as_lists(one.predict(case.asked)) == as_lists(other.predict(case.asked))


@EVERY
def test_the_registry_says_what_the_class_is(name):
    entry = next(entry for entry in registry.ENTRIES if entry.class_name == name)
    cls = registry.model_class(name)
    assert cls is getattr(likely, name)
    assert (cls.__name__, cls.__module__) == (name, entry.module)
    assert entry.module.startswith(f"likely.models.{entry.family}.")
    assert issubclass(cls, SequencePredictor)
    assert not [hook for hook in entries.HOOKS if hasattr(cls, hook)], "those are of models of p(x)"
    for public in ("fit", "evidence", "score_samples", "log_prob", "save"):
        assert public not in vars(cls), f"{public} is final"


@EVERY
def test_fitted_models_predict_and_score(name, fitted):
    case, model = CASES[name], fitted(name)
    assert len(model.predict(case.asked)) == len(case.asked)
    assert 0 <= model.score(case.X, case.y) <= 1
    assert len(model.history_["loss"]) == model.n_epochs


@EVERY
def test_evidence_is_typed_and_speaks_of_the_pairs(name, fitted):
    case, model = CASES[name], fitted(name)
    check_evidence(model.evidence, case)
    evidence = model.evidence(case.asked, case.answers)
    assert (evidence.values < 0).all()
    np.testing.assert_array_equal(evidence.values, model.log_prob(case.asked, case.answers))
    np.testing.assert_array_equal(evidence.values, model.score_samples(case.asked, case.answers))


@EVERY
def test_every_target_of_an_input_adds_up_to_one(name, fitted):
    check_sums_to_one(fitted(name).score_samples, CASES[name])


@EVERY
def test_evidence_is_a_function_of_the_pair_alone(name, fitted):
    case, model = CASES[name], fitted(name)
    whole = model.score_samples(case.asked, case.answers)
    np.testing.assert_array_equal(model.score_samples(case.asked[::-1], case.answers[::-1])[::-1], whole)
    np.testing.assert_array_equal(model.score_samples(case.asked[:1], case.answers[:1]), whole[:1])


def test_forms_of_the_same_pairs_have_the_same_name(fitted):
    texts = fitted("SequenceLabeller").evidence(["ab", "b"], ["xy", "z"])
    lists = fitted("SequenceLabeller").evidence((["a", "b"], np.array(["b"])), [("x", "y"), ["z"]])
    assert texts.fingerprint == lists.fingerprint
    machine = fitted("NeuralTuringMachine")
    bits = machine.evidence([[[0, 1]]], [[[1]]])
    for kind in (bool, np.int8, np.float64):
        assert machine.evidence(np.array([[[0, 1]]], kind), [np.array([[1]], kind)]).fingerprint == bits.fingerprint


def test_what_is_a_token_and_where_a_sequence_ends_is_part_of_the_name(fitted):
    model = fitted("Seq2Seq")
    forms = (["ab", "c"], ["a", "bc"], [["ab"], "c"], [["a", "b", "c"], ""])
    assert len({model.evidence(X, ["x", "x"]).fingerprint for X in forms}) == len(forms)


@EVERY
def test_conditional_evidence_refuses_what_is_no_p_of_target_given_input(name, fitted):
    case = CASES[name]
    evidence = fitted(name).evidence(case.asked, case.answers)
    text = likely.NGram(2).fit(["a b", "b"]).evidence(["a"] * len(evidence))
    for one, other in ((evidence, text), (text, evidence)):
        with pytest.raises(likely.IncomparableError, match=r"conditional counting \(target \| input\) measure"):
            _ = one - other
    swapped = fitted(name).evidence([case.another_input, *case.asked[1:]], case.answers)
    with pytest.raises(likely.IncomparableError, match="different rows"):
        _ = evidence - swapped


def test_models_of_the_same_pairs_compare_whatever_their_vocabularies(fitted):
    models, pairs = [fitted(name) for name in ("Seq2Seq", "SequenceLabeller")], (["ab", "bb"], ["xx", "xx"])
    assert models[0].target_tokens_ != models[1].labels_
    difference = models[0].evidence(*pairs) - models[1].evidence(*pairs)
    assert difference.kind == "exact"
    wanted = np.mean(models[0].log_prob(*pairs) - models[1].log_prob(*pairs))
    np.testing.assert_allclose(difference.mean, wanted, rtol=1e-12)


@EVERY
def test_same_seed_same_bits(name, fitted):
    case = CASES[name]
    assert_same_model(clone(fitted(name)).fit(case.X, case.y), fitted(name), case)


@EVERY
def test_another_seed_is_another_model(name, fitted):
    case = CASES[name]
    other = small(name, random_state=1).fit(case.X, case.y)
    assert (other.log_prob(case.asked, case.answers) != fitted(name).log_prob(case.asked, case.answers)).any()


@EVERY
def test_saved_and_loaded_is_the_same_model(name, fitted, tmp_path):
    fitted(name).save(tmp_path / "model.likely")
    loaded = likely.load(tmp_path / "model.likely")
    assert type(loaded) is type(fitted(name))
    assert loaded.get_params() == fitted(name).get_params()
    assert loaded.history_ == fitted(name).history_
    assert_same_model(loaded, fitted(name), CASES[name])


@EVERY
def test_a_clone_has_the_settings_and_nothing_else(name, fitted):
    copy = clone(fitted(name))
    assert copy.get_params() == fitted(name).get_params()
    assert vars(copy) == copy.get_params()


@EVERY
def test_unfitted_models_say_so(name, tmp_path):
    case, model = CASES[name], small(name)
    for ask in (model.evidence, model.score_samples, model.log_prob, model.score):
        with pytest.raises(NotFittedError):
            ask(case.asked, case.answers)
    with pytest.raises(NotFittedError):
        model.predict(case.asked)
    with pytest.raises(NotFittedError):
        model.save(tmp_path / "model.likely")


@EVERY
def test_a_fit_that_fails_leaves_an_unfitted_model(name, fitted, tmp_path):
    case = CASES[name]
    fitted(name).save(tmp_path / "model.likely")
    for model in (small(name), likely.load(tmp_path / "model.likely")):
        with pytest.raises(ValueError, match="give as many"):
            model.fit(case.X, case.y[:-1])
        with pytest.raises(NotFittedError):
            model.predict(case.asked)


@EVERY
@pytest.mark.parametrize("verb", ["fit", "evidence", "score_samples", "log_prob"])
def test_bad_pairs_are_refused_before_work(name, verb, fitted, monkeypatch):
    def work(*_, **__):
        raise AssertionError("it went to work")

    for worker in ("train", "grouped"):
        monkeypatch.setattr(sequence_predictor, worker, work)
    case = CASES[name]
    ask = getattr(small(name) if verb == "fit" else fitted(name), verb)
    bad = [
        (case.X, case.y[:-1], "give as many"),
        (case.X[:-1], case.y, "give as many"),
        ([], [], "has no sequences"),
        (5, case.y, "X must be a list of sequences"),
        (None, case.y, "X must be a list of sequences"),
        ("ab", case.y, "X must be a list of sequences"),
        ([5.5] * len(case.X), case.y, "sequence 0 of X must be"),
        (case.X, None, "y "),
        (case.X, 7, "y "),
    ]
    for X, y, message in bad:
        with pytest.raises(ValueError, match=message):
            ask(X, y)


@EVERY
def test_bad_settings_and_validation_pairs_are_refused_before_work(name, monkeypatch):
    monkeypatch.setattr(sequence_predictor, "train", None)
    case = CASES[name]
    for setting, value in (("n_epochs", 0), ("batch_size", 2.5), ("learning_rate", -1.0), ("n_hidden", "many")):
        with pytest.raises(ValueError, match=f"The '{setting}' parameter of {name}"):
            small(name, **{setting: value}).fit(case.X, case.y)
    with pytest.raises(ValueError, match="`patience` needs pairs"):
        small(name, patience=1).fit(case.X, case.y)
    with pytest.raises(ValueError, match=r"`valid` must be a pair \(X, y\)"):
        small(name).fit(case.X, case.y, valid=case.X[:3])
