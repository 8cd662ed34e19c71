"""Why models of a graph of the columns do not offer every method of the contract."""

from __future__ import annotations

_NO_CODE = "its columns share no latent code"
WITHOUT_CODE = {
    "transform": _NO_CODE,
    "fit_transform": _NO_CODE,
    "inverse_transform": _NO_CODE,
    "denoise": "it has no code through which a row could be seen again; `condition` gives cells from others",
}
