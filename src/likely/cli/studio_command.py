"""`likely studio`: a page on this machine to look at data and models."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from likely.cli.options import note


def studio(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="DATA|MODEL_FILE...", help="A table or data set, models that `likely fit` wrote, or both."
        ),
    ],
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Of the address; 0 takes a free one.")] = 0,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Print the address, and open nothing.")] = False,
    folder: Annotated[
        Path, typer.Option("--folder", help="Where the studio keeps its work, in .likely-studio.")
    ] = Path("."),
    jobs: Annotated[int, typer.Option("--jobs", min=1, help="Comparisons that run at a time.")] = 1,
    listen: Annotated[
        str | None,
        typer.Option("--listen", metavar="ADDRESS", help="Listen on another address than this machine's own."),
    ] = None,
) -> None:
    """Open a page on this machine: see the table, compare models, ask what if, find odd rows, fill holes.

    The address that is printed ends in a token, which lets its holder in. Only this machine can reach it, unless
    --listen names another address: then whoever reads your network's traffic can see the token and the data.

    \b
    Examples:
      likely studio table.csv
      likely studio digits --no-browser --port 8700
      likely studio table.csv mixture.likely --folder work
    """
    models = [Path(name) for name in files if name.endswith(".likely")]
    tables = [name for name in files if not name.endswith(".likely")]
    if len(tables) > 1:
        raise ValueError(f"the studio shows one table, got {', '.join(tables)}: start one studio for each.")
    if not folder.is_dir():
        raise ValueError(f"--folder needs a folder that exists, got {folder}.")
    absent = next((path for path in models if not path.is_file()), None)
    if absent is not None:
        raise ValueError(f"there is no file {absent}.")
    try:
        from likely.studio.app import serve
    except ImportError as error:
        raise ValueError(
            f"the studio needs a package that is not installed ({error.name}): pip install 'likely[studio]'."
        ) from None
    from likely.studio.workspace import Workspace

    data = tables[0] if tables else None
    if data is not None and Path(data).is_file():
        data = str(Path(data).resolve())
    space = Workspace(folder, data, [path.resolve() for path in models])
    if listen is not None and listen not in ("127.0.0.1", "localhost"):
        note(
            f"likely: listening on {listen}: others on the network can reach the studio. What passes is not encrypted, "
            "so whoever reads the traffic has the token, and with it the data and the right to start comparisons."
        )

    def say(address: str) -> None:
        typer.echo(f"Studio: {address}")
        note("Ctrl-C ends it; comparisons stop with their checkpoints kept.")

    serve(space, host=listen or "127.0.0.1", port=port, n_at_once=jobs, browser=not no_browser, say=say)
