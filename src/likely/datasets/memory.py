"""How much memory is free: what files claim to need is asked beforehand."""

from __future__ import annotations

import os
from pathlib import Path


def free_memory() -> float:
    """Bytes of memory that are free, or as many as there are where the system does not say."""
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return float(line.split()[1]) * 1024
    except OSError:
        pass
    return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
