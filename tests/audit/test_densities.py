"""Every model with a likelihood against independent oracles: sums, bounds, holes, conditionals, samples, draws."""

from pathlib import Path

import numpy as np
import pytest

from likely.storage import registry
from tests.audit import density_checks, refusal_checks, tables
from tests.audit.cases import all_cases, few_cases, schema_of
from tests.audit.findings import SMALL
from tests.audit.known import KNOWN, param
from tests.audit.oracles import ORACLES, UNNORMALISED, WITHOUT
from tests.contracts.table import SMALL as SMALL_SETTINGS

CASES = few_cases()


@pytest.mark.parametrize(
    ("case", "check"), [param(check, str(case), case, check) for case in CASES for check in density_checks.CHECKS]
)
def test_what_a_model_says_is_its_law(case, check, global_random_seed):
    for finding in density_checks.CHECKS[check](case, global_random_seed, SMALL):
        finding.require()


@pytest.mark.parametrize(
    "name", [param("refusal", name, name) for name in (refusal_checks.REFUSED | refusal_checks.ALLOWED)]
)
def test_only_like_is_compared_with_like(name, global_random_seed):
    refusal_checks.refusal(name, global_random_seed).require()


@pytest.mark.parametrize("name", sorted(WITHOUT))
def test_no_likelihood_is_said_to_be_none(name):
    kind = "real" if name != "GAN" else "binary"
    rows = tables.table(kind, 0, 40)
    settings = SMALL_SETTINGS[name] | {"n_epochs": 1, "n_components": 1}
    model = registry.model_class(name)(**settings, schema=schema_of(kind), random_state=0).fit(rows)
    evidence = model.evidence(rows)
    assert evidence.kind == "unavailable"
    assert evidence.reason
    assert np.isnan(evidence.values).all()


def test_every_registered_model_is_audited():
    """A new family starts here: with its equation in `oracles.py`, or with a reason to have none."""
    names = {entry.class_name for entry in registry.learning_from("rows")}
    assert set(ORACLES) | WITHOUT == names
    assert set(ORACLES) >= UNNORMALISED
    assert {case.class_name for case in all_cases()} == {case.class_name for case in CASES} == set(ORACLES)


def test_what_is_known_is_looked_at():
    """An entry that no check can find would never be removed."""
    names = {str(case) for case in all_cases()} | {case.name for case in all_cases()}
    names |= set(refusal_checks.REFUSED | refusal_checks.ALLOWED)
    assert {name for _, name in KNOWN} <= names
    assert {check for check, _ in KNOWN} <= {*density_checks.CHECKS, "refusal"}


def test_oracles_are_independent():
    """Nothing of the library is imported where the equations are written down anew."""
    for module in ("oracles.py", "tables.py", "findings.py"):
        text = (Path(__file__).parent / module).read_text()
        assert "import likely" not in text
        assert "from likely" not in text
