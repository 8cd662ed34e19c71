"""The batch is shared out over all devices, with the results of one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np

from tests.conftest import ROOT, environment_of


def run_on(n_devices: int, output: Path) -> dict[str, np.ndarray]:
    command = [sys.executable, "-W", "error", "-m", "tests.training.run_alone", str(output)]
    subprocess.run(command, cwd=ROOT, env=environment_of(n_devices), check=True)
    with np.load(output) as arrays:
        return dict(arrays)


def test_two_devices_agree_with_one(tmp_path):
    """41 rows in batches of 5: both the batch and the last rows need padding for two devices."""
    one, two = run_on(1, tmp_path / "one.npz"), run_on(2, tmp_path / "two.npz")
    assert (int(one.pop("n_devices")), int(two.pop("n_devices"))) == (1, 2)
    for name, expected in one.items():
        np.testing.assert_allclose(two[name], expected, rtol=2e-4, atol=2e-6, err_msg=name)
