"""scikit-learn's own checks on the classifier."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from likely import PretrainedClassifier

# Without pretraining, whose layers are RBMs that have their own checks: most of the time would go into compiling them.
QUICK = PretrainedClassifier(
    (8,), pretrain=False, n_epochs=30, optimizer="momentum", learning_rate=0.1, schedule="constant", random_state=0
)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks([QUICK])
def test_scikit_learn_check(estimator, check):
    check(estimator)
