"""The command line: `likely compare | fit | score | sample | fidelity | impute | denoise | models | datasets`.

Nothing heavy is imported before a command runs, so that `likely --help` answers at once.
"""

__all__ = ["main"]


def main() -> None:
    """Entry point of the `likely` command."""
    from likely.cli.app import app

    app(prog_name="likely")
