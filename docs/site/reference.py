"""The pages of the reference: every public name of likely once, on the page of the room where it lives.

`likely.<Name>` is imported when it is first used, which a reader of source text cannot see; so the pages name the
modules themselves. They are found in the text of the source: neither JAX nor any other part of likely is loaded.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import NamedTuple

import likely

SOURCE = Path(likely.__file__).resolve().parent.parent
TITLES = {"contract": "The contract", "montecarlo": "Monte Carlo", "schema": "Schema", "storage": "Files"}
ROOMS_WITHIN = ("nets.regions",)  # public packages inside others
FIRST = ("contract", "models", "leaderboard", "schema", "datasets")  # then what models are made of


class Name(NamedTuple):
    """A public name, `likely.Mixture`, and its home, `likely.models.latent.mixture.mixture.Mixture`."""

    public: str
    home: str

    @property
    def room(self) -> str:
        """The page that it belongs to: "contract", "models-latent"."""
        parts = self.home.split(".")
        return f"models-{parts[2]}" if parts[1] == "models" else parts[1]

    @property
    def anchor(self) -> str:
        """A link to it from any page."""
        return f"[`{self.public}`][{self.home}]"


def public_names() -> list[Name]:
    """Every public name, the shorter one of those that mean the same; packages and the version left out."""
    own = [Name(f"likely.{name}", home_of(module, name)) for name, module in likely._HOMES.items()]
    packages = (*likely._PACKAGES, *ROOMS_WITHIN)
    parts = [name for package in packages for name in package_names(f"likely.{package}")]
    shown: dict[str, Name] = {}
    for name in sorted(own) + sorted(parts):
        shown.setdefault(name.home, name)
    return list(shown.values())


def package_names(package: str) -> list[Name]:
    """What a package offers: `__all__`, or without it the functions and classes of its modules."""
    for node in tree(package).body:
        if isinstance(node, ast.Assign) and definition(node) == "__all__":
            return [Name(f"{package}.{name}", home_of(package, name)) for name in ast.literal_eval(node.value)]
    modules = [f"{package}.{path.stem}" for path in sorted(file_of(package).parent.glob("[!_]*.py"))]
    defined = [(m, node) for m in modules for node in tree(m).body if isinstance(node, ast.ClassDef | ast.FunctionDef)]
    return [Name(*[f"{module}.{node.name}"] * 2) for module, node in defined if not node.name.startswith("_")]


def home_of(module: str, name: str) -> str:
    """Where a name that a module has is defined."""
    for node in tree(module).body:
        if definition(node) == name:
            return f"{module}.{name}"
        if isinstance(node, ast.ImportFrom) and name in [alias.asname or alias.name for alias in node.names]:
            return home_of(str(node.module), name)
    raise LookupError(f"{module} has no {name}")


def docstring(home: str) -> str:
    """The docstring of a class or function, or the text below a constant; empty where there is none."""
    module, _, name = home.rpartition(".")
    body = tree(module).body
    place = next(i for i, node in enumerate(body) if definition(node) == name)
    node = body[place]
    if isinstance(node, ast.ClassDef | ast.FunctionDef):
        return ast.get_docstring(node) or ""
    below = body[place + 1] if place + 1 < len(body) else None
    if not isinstance(below, ast.Expr) or not isinstance(below.value, ast.Constant):
        return ""
    return below.value.value if isinstance(below.value.value, str) else ""


def pages() -> dict[str, str]:
    """The Markdown of each page by its file, in the order of the navigation."""
    rooms: dict[str, list[Name]] = defaultdict(list)
    for name in public_names():
        rooms[name.room].append(name)
    order = sorted(rooms, key=lambda room: (_rank(room), room))
    return {"reference/index.md": _overview({room: rooms[room] for room in order})} | {
        f"reference/{room}.md": _page(room, rooms[room]) for room in order
    }


def title_of(room: str) -> str:
    """The heading of a page."""
    kind, _, family = room.partition("-")
    return f"Models: {family}" if family else TITLES.get(kind, kind.capitalize())


def _page(room: str, names: list[Name]) -> str:
    about = ast.get_docstring(tree(f"likely.{room.replace('-', '.')}")) or ""
    options = "    options:\n      heading: {}\n      toc_label: {}\n"
    blocks = [f"::: {name.home}\n" + options.format(name.public, name.public.rpartition(".")[2]) for name in names]
    return "\n".join([f"# {title_of(room)}\n", about.split("\n\n")[0] + "\n", *blocks])


def _overview(rooms: dict[str, list[Name]]) -> str:
    parts = [
        "# Reference\n\nEvery public name. What `likely` itself has is imported when it is first used. Types such as\n"
        "`Count`, `Positive` and `Share` in the signature of a model say which values a setting may have.\n"
    ]
    for room, names in rooms.items():
        rows = "".join(f"| {name.anchor} | {_summary(name.home)} |\n" for name in names)
        parts.append(f"## [{title_of(room)}]({room}.md)\n\n| name | |\n|---|---|\n{rows}")
    return "\n".join(parts) + f"\n`likely.__version__` is the version, {likely.__version__!r} here.\n"


def _summary(home: str) -> str:
    first = docstring(home).strip().split("\n\n")[0]
    return " ".join(first.split()).replace("|", "\\|")


def _rank(room: str) -> int:
    kind = room.partition("-")[0]
    return FIRST.index(kind) if kind in FIRST else len(FIRST)


def definition(node: ast.stmt) -> str:
    """The name that a statement of a module defines; empty for others."""
    if isinstance(node, ast.ClassDef | ast.FunctionDef):
        return node.name
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
        return node.targets[0].id
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return node.target.id
    return ""


def file_of(module: str) -> Path:
    """The source of a module or package."""
    path = SOURCE.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


@cache
def tree(module: str) -> ast.Module:
    """The parsed source of a module or package."""
    return ast.parse(file_of(module).read_text())
