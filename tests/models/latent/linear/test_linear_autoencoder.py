"""LinearAutoencoder against the singular value decomposition, and on rows with holes."""

import numpy as np
import pytest

from likely import LinearAutoencoder
from tests.models.latent.variational.autoencoder_checks import check_eckart_young, line_and_noise


@pytest.mark.parametrize("tied", [False, True])
def test_gradient_reaches_the_svd_optimum(x64, tied, global_random_seed):
    rows = line_and_noise(global_random_seed)
    model = LinearAutoencoder(2, tied=tied, random_state=global_random_seed).fit(rows)
    check_eckart_young(model.denoise(rows), rows, 2)
    codes = model.transform(rows)
    np.testing.assert_allclose(model.inverse_transform(codes), model.denoise(rows))


def test_holes_of_rows_in_a_plane_are_filled_and_an_empty_row_gives_the_mean(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    rows = rng.normal(size=(60, 2)) @ rng.normal(size=(2, 6)) + 5
    rows[:, 5] = 7.0  # a constant column
    holed = np.where(rng.random(rows.shape) < 0.15, np.nan, rows)
    holed[0] = np.nan
    model = LinearAutoencoder(2, n_epochs=150, random_state=0).fit(holed)
    filled, enough = model.denoise(holed), (~np.isnan(holed)).sum(axis=1) >= 4
    np.testing.assert_allclose(filled[enough], rows[enough], atol=5e-3)  # single precision, far from the mean
    np.testing.assert_allclose(filled[0], rows.mean(axis=0), atol=6 * rows.std() / np.sqrt(60))


def test_more_components_than_columns_are_refused():
    with pytest.raises(ValueError, match=r"`n_components` must be at most n_columns \(6\), got 7: lower it"):
        LinearAutoencoder(7).fit(line_and_noise(0))
