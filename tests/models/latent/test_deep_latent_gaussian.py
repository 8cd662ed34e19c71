import numpy as np
import pytest

from likely import DeepLatentGaussian
from tests.models.latent.deep_latent_checks import check_deep_weights, deep_case
from tests.models.latent.vae_oracles import factor_log_prob, factor_rows


@pytest.mark.parametrize("posterior", ["low_rank", "full"])
def test_evidence_of_linear_layers_is_factor_analysis(x64, global_random_seed, posterior):
    module, *law = deep_case(global_random_seed, posterior)
    rows = factor_rows(global_random_seed, *law, 8)
    check_deep_weights(module, rows, factor_log_prob(rows, *law), global_random_seed)


@pytest.mark.parametrize(
    ("layers", "message"),
    [((), "size of at least one layer"), ((3, 0), "`layers` must hold sizes of layers"), (3, "'layers' parameter")],
)
def test_bad_layers_are_named(layers, message):
    with pytest.raises(ValueError, match=message):
        DeepLatentGaussian(layers).fit(np.eye(4))
