"""Networks on the command line: ask one, draw it, write it in another format."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from likely.cli.options import Force, Json, note, print_json
from likely.cli.output import check_output

Network = Annotated[
    str, typer.Argument(metavar="NETWORK", help="A .bif, .xml, .uai or .net file, also gzipped, or a fitted network.")
]
Given = Annotated[list[str], typer.Option("--given", metavar="COLUMN=VALUE", help="A finding; several by repeating.")]
PICTURES = (".png", ".svg", ".pdf", ".dot")


def query(
    network: Network,
    given: Given = [],  # noqa: B006 - typer wants a list
    of: Annotated[list[str], typer.Option("--of", metavar="COLUMN", help="Asked for; several are joint.")] = [],  # noqa: B006
    json: Json = False,
) -> None:
    """The distribution of columns of a network given findings; of each column alone without --of.

    \b
    Examples:
      likely query cancer.bif --given Smoker=True --of Cancer
      likely query alarm.bif --given HRBP=HIGH --of HR --of CO
      likely query alarm.bif                        all columns, each by itself
    """
    findings = parse_findings(given)
    net = load_network(network)
    if of:
        table = net.query(of if len(of) > 1 else of[0], findings)
        if json:
            print_json({"given": findings, "of": of, "kind": "exact", "table": table.to_dicts()})
            return
        _print_table([*of, "probability"], [[*map(str, row[:-1]), f"{row[-1]:.6g}"] for row in table.rows()])
        return
    found = net.marginals(findings)
    if json:
        print_json({"given": findings, "kind": found.kind, "method": found.method, "marginals": dict(found)})
        return
    rows = [[name, str(state), f"{p:.6g}"] for name, states in found.items() for state, p in states.items()]
    _print_table(["column", "value", "probability"], rows)
    if found.kind != "exact":
        note(f"an estimate: {found.method}")


def graph(
    network: Network,
    out: Annotated[Path | None, typer.Option("--out", help=f"Picture: {', '.join(PICTURES)}.")] = None,
    force: Force = False,
) -> None:
    """Draw the graph of a network; without --out, its text in DOT.

    \b
    Examples:
      likely graph alarm.bif --out alarm.png
      likely graph alarm.bif > alarm.dot
    """
    check_output(out, force, PICTURES)
    found = load_network(network).graph_
    if out is None:
        typer.echo(found.to_dot(), nl=False)
        return
    from io import BytesIO

    from likely.storage.files import write_atomically

    if out.suffix.lower() == ".dot":
        write_atomically(out, found.to_dot().encode())
    else:
        buffer = BytesIO()
        found.draw().figure.savefig(buffer, format=out.suffix.lower()[1:], dpi=120)
        write_atomically(out, buffer.getvalue())
    note(f"{found} drawn in {out}")


def convert(
    network: Network,
    out: Annotated[Path, typer.Argument(metavar="OUT", help="A .bif, .xml or .uai file, or one of these and .gz.")],
    force: Force = False,
) -> None:
    """Write a network in another format; its probabilities stay the same to the bit.

    \b
    Examples:
      likely convert alarm.bif alarm.uai
      likely convert alarm.bif.gz alarm.xml
    """
    check_output(out, force)
    net = load_network(network)
    net.write(out)
    note(f"{net.graph_} written to {out}")


def parse_findings(texts: list[str]) -> dict[str, str]:
    """{"Smoker": "yes"} from ["Smoker=yes"]."""
    out = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not sign or not name or not value:
            raise ValueError(f"--given needs COLUMN=VALUE, got {text!r}.")
        if name in out:
            raise ValueError(f"--given names column {name!r} twice.")
        out[name] = value
    return out


def load_network(path: str) -> Any:
    """The network in a file of any format."""
    from likely.models.graphs.files.network_file import is_network

    if is_network(path):
        from likely.models.graphs.bayesian_network.building import read_network

        return read_network(path)
    from likely.contract.estimator import load

    model = load(path)
    if not hasattr(model, "graph_"):
        raise ValueError(f"{path} holds a {type(model).__name__}, which has no graph: give a network.")
    return model


def _print_table(head: list[str], rows: list[list[str]]) -> None:
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    for row in [head, *rows]:
        typer.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
