"""Jobs that end or hold their process, for the test of those that watch."""

import os
import signal
import sys
import time

from tests.campaign.watched import limit_time, serve


def spin() -> None:
    """As machine code does: no signal interrupts it."""
    signal.pthread_sigmask(signal.SIG_BLOCK, set(signal.Signals) - {signal.SIGXCPU})
    limit_time(0)
    while True:
        pass


def leave() -> None:
    sys.stderr.write("its last word")
    sys.stderr.flush()
    os._exit(3)


BUGS = {
    "crash": lambda: os.kill(os.getpid(), signal.SIGSEGV),
    "machine code": spin,
    "exit": leave,
    "wait": lambda: time.sleep(60),
    "sound": lambda: print("no answer"),  # noqa: T201
}


def work(job: str) -> str:
    BUGS[job]()
    return job


if __name__ == "__main__":
    serve(work)
