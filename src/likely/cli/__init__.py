"""The command line: `likely compare | fit | score | sample | fidelity | impute | denoise | models | datasets`.

Nothing heavy is imported before a command runs, so that `likely --help` answers at once.
"""

__all__ = ["main"]


def main() -> None:
    """Entry point of the `likely` command."""
    import os

    # Read by polars' allocator when it is loaded: what it frees goes back at once. It would keep it for half a second,
    # in which reading a large table frees twice as much as the table takes.
    os.environ.setdefault("_RJEM_MALLOC_CONF", "dirty_decay_ms:0,muzzy_decay_ms:0")
    from likely.cli.app import app

    app(prog_name="likely")
