"""What all tests share: seeds, the configuration of JAX, checked shapes, and the folder of real data.

Seeds are scikit-learn's way: a test that draws random numbers takes `global_random_seed` and must pass with every seed.
One fixed seed runs by default; `LIKELY_TESTS_GLOBAL_RANDOM_SEED` takes another ("7"), a range ("3-9", both ends
included) or "all" (0 to 99). Hypothesis draws the same examples every time, unless that variable is set.

Shapes in signatures are checked in every call that a test makes: tests/shapes.py.
"""

from __future__ import annotations

import functools
import gc
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import jaxtyping
import pytest
from hypothesis import settings

from tests import shapes

ROOT = Path(__file__).resolve().parent.parent
DEFAULT_SEED = 42
ALL_SEEDS = range(100)

# Environment variables rather than jax.config, so that they also hold in the processes that tests start, and so that
# tests of the light parts need not import JAX. They are read when JAX is imported, which is after this file.
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(ROOT / ".cache" / "jax"))
# All programs, as for users: files of tests share thousands that are too small to be worth it one by one.
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")
# Tests wait for the compiler more than for programs. XLA's older emitter takes half the time of its default one.
QUICK_COMPILER = "--xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1"
os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")
# Nobody reads where an operation came from, and writing it down takes a tenth of the time.
os.environ.setdefault("JAX_TRACEBACK_IN_LOCATIONS_LIMIT", "0")
os.environ.setdefault("XLA_FLAGS", QUICK_COMPILER)
os.environ.setdefault("JAX_NUMPY_RANK_PROMOTION", "raise")  # a shape that only broadcasting makes fit is a bug
os.environ.setdefault("MPLBACKEND", "Agg")
os.environ.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", str(ROOT / ".cache" / "hypothesis"))

# No deadline: how long an example takes depends on what else the machine does, and on whether JAX compiles.
settings.register_profile(
    "likely", deadline=None, derandomize=not os.environ.get("LIKELY_TESTS_GLOBAL_RANDOM_SEED"), print_blob=True
)
settings.load_profile("likely")

# Tracing makes objects by the million and few cycles. Python would walk through them again and again, which takes a
# twelfth of the time; `_release_programs` looks for cycles where much was made.
gc.disable()
CROWDED = 3e9  # Bytes of a process from which on programs are let go: two such processes leave room on small machines.

shapes.install()


def seeds_from(text: str | None) -> list[int]:
    """The seeds that a value of LIKELY_TESTS_GLOBAL_RANDOM_SEED asks for."""
    if not text:
        return [DEFAULT_SEED]
    if text == "all":
        return list(ALL_SEEDS)
    first, dash, last = text.partition("-")
    try:
        seeds = list(range(int(first), int(last if dash else first) + 1))
    except ValueError:
        seeds = []
    if not seeds or seeds[0] < 0:
        raise pytest.UsageError(
            f'LIKELY_TESTS_GLOBAL_RANDOM_SEED must be a seed ("7"), a range ("3-9") or "all", got {text!r}.'
        )
    return seeds


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "global_random_seed" in metafunc.fixturenames:
        seeds = seeds_from(os.environ.get("LIKELY_TESTS_GLOBAL_RANDOM_SEED"))
        metafunc.parametrize("global_random_seed", seeds, ids=[f"seed{seed}" for seed in seeds])


@pytest.fixture(scope="module", autouse=True)
def _release_programs(request: pytest.FixtureRequest) -> Iterator[None]:
    """Let go of compiled programs, and of cycles, where a file of tests leaves much: all of them take gigabytes.

    A file that replaces parts of the library, as those of planted bugs do, must not find programs that were compiled
    before it, nor leave its own to others.
    """
    replaces = _replaces_parts(request.node.path)
    if replaces:
        _clear_programs()
    yield
    if replaces or _resident_bytes() > CROWDED:
        _clear_programs()


def _clear_programs() -> None:
    if "jax" in sys.modules:
        import jax

        jax.clear_caches()
        gc.collect(1)  # Only what was made since the last time: what is older is kept, and is not walked through.


@functools.cache
def _replaces_parts(path: Path) -> bool:
    return "controls" in path.parts or any(word in path.read_text() for word in ("monkeypatch", "mock"))


def _resident_bytes() -> float:
    """What this process has in memory, as Linux tells; infinite where the system does not tell it this way."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return float("inf")
    return pages * os.sysconf("SC_PAGE_SIZE")


@pytest.fixture(scope="module", autouse=True)
def _one_context(_release_programs: None) -> Iterator[None]:
    """One MLIR context for all programs of a file.

    JAX makes one for each program, loads every dialect into it and keeps it as long as the program: a quarter of the
    time to compile a small program, and two megabytes. A program does not depend on what else its context holds.
    """
    if "jax" not in sys.modules:
        yield
        return
    from jax._src.interpreters import mlir  # no public name leads there; without this patch tests only take longer

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mlir, "make_ir_context", functools.cache(mlir.make_ir_context))
        yield


@pytest.fixture
def unchecked() -> Iterator[None]:
    """No check of shapes and types inside the test, which hands a function what the function itself must refuse."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


def environment_of(n_devices: int | None = None) -> dict[str, str]:
    """For a process of its own that runs a module of the tests on so many virtual devices, if it does not choose."""
    flag = "" if n_devices is None else f" --xla_force_host_platform_device_count={n_devices}"
    return {
        **os.environ,
        "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}",
        "XLA_FLAGS": os.environ["XLA_FLAGS"] + flag,
    }


@pytest.fixture
def x64() -> Iterator[None]:
    """Double precision inside the test, for oracles."""
    import jax

    with jax.enable_x64(True):
        yield


def find_data_folder() -> Path | None:
    """The folder of real data: LIKELY_DATA, else shared/data beside the repository; None where there is neither."""
    named = os.environ.get("LIKELY_DATA")
    folder = Path(named) if named else ROOT.parent / "shared" / "data"
    return folder if folder.is_dir() else None


@pytest.fixture
def data_folder(monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of real data, which LIKELY_DATA then names; the test is skipped where there is none."""
    folder = find_data_folder()
    if folder is None:
        pytest.skip("no real data: set LIKELY_DATA to a folder with mnist/, debd/, tabular/ ... to run this test")
    monkeypatch.setenv("LIKELY_DATA", str(folder))
    return folder
