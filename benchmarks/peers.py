"""Peers in an environment of their own, benchmarks/.venv, made from peers.txt on first use."""

from __future__ import annotations

import json
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

_HERE = Path(__file__).parent
ENVIRONMENT = _HERE / ".venv"
_DONE = ENVIRONMENT / ".installed"  # holds the requirements that it was made from


def is_ready() -> bool:
    """Whether the environment is there and made from peers.txt as it is now."""
    return _DONE.is_file() and _DONE.read_text() == "\n".join(requirements())


def requirements() -> list[str]:
    """Lines of peers.txt, in the order in which they are installed."""
    lines = (line.partition("#")[0].strip() for line in (_HERE / "peers.txt").read_text().splitlines())
    return [line for line in lines if line]


def prepare() -> None:
    """Make the environment unless it is ready; one requirement after the other, as peers.txt orders them."""
    if is_ready():
        return
    print("Installing the peers into benchmarks/.venv (a few minutes, only when peers.txt changes) ...", flush=True)
    venv.create(ENVIRONMENT, with_pip=True, clear=True)
    for requirement in requirements():
        subprocess.run([_python(), "-m", "pip", "install", "-qq", requirement], check=True)
    _DONE.write_text("\n".join(requirements()))


def run(script: str, **arguments: Any) -> dict[str, Any]:
    """Run `benchmarks/<script>.py` there with arguments as JSON; what it prints last, as JSON, is its answer."""
    prepare()
    command = [_python(), str(_HERE / f"{script}.py"), json.dumps(arguments)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{script} failed:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def _python() -> str:
    return str(ENVIRONMENT / ("Scripts" if sys.platform == "win32" else "bin") / "python")
