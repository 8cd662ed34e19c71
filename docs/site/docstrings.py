"""What griffe is told of the house's habits: settings declared as fields, and `name : description` in docstrings.

Classes of `Declared`, of Equinox and named tuples get their constructor from annotated fields, at run time; griffe
knows this of dataclasses only. And in NumPy's style a type stands where the house, whose signatures have the types,
writes what a parameter is, of several at once if need be.
"""

from __future__ import annotations

import re
from typing import Any

from griffe import Attribute, Class, Expr, ExprCall, Extension, Function, Object, Parameter, ParameterKind, Parameters

FROM_FIELDS = {"likely.contract.settings.Declared", "equinox.Module", "typing.NamedTuple"}
HEADING = re.compile(r"^([A-Z][\w ]+)\n-{3,}\n", re.MULTILINE)
NAMES = r"\*{0,2}\w[\w.]*(?:,\s+\*{0,2}\w[\w.]*)*"
ITEM = re.compile(rf"^({NAMES}) : ", re.MULTILINE)
NEXT_ITEM = re.compile(r"(?<=[.;]) (?=\w+_(?:, \w+_)* : )")  # the second and third on a line


class HouseStyle(Extension):
    """Constructors from fields, and descriptions where the house writes them."""

    def on_object(self, *, obj: Object, **others: Any) -> None:
        """Rewrite the docstring for the parser."""
        if obj.docstring is not None:
            obj.docstring.value = rewritten(obj.docstring.value)

    def on_package(self, *, pkg: Any, **others: Any) -> None:
        """Give constructors to the classes that make theirs from fields."""
        for cls in list(_classes(pkg)):
            if "__init__" not in cls.members and _is_from_fields(cls):
                _set_constructor(cls)


def rewritten(text: str) -> str:
    """A docstring as Markdown, but for its examples, which griffe's parser takes last."""
    before, *rest = HEADING.split(text)
    prose, examples = ["\n\n".join(map(_listed, before.strip().split("\n\n")))], ""
    for title, body in zip(rest[::2], rest[1::2], strict=True):
        if title == "Examples":
            examples = f"Examples\n--------\n{body.rstrip()}"
        else:
            prose.append(f"**{title}**\n\n{_listed(body.strip())}")
    return "\n\n".join([*prose, examples]).strip()


def _listed(body: str) -> str:
    """The first paragraphs as a list if they are items, the others as they are."""
    paragraphs = body.split("\n\n")
    n_items = next((i for i, text in enumerate(paragraphs) if not ITEM.match(text)), len(paragraphs))
    lines = NEXT_ITEM.sub("\n", "\n".join(paragraphs[:n_items]))
    return "\n\n".join([ITEM.sub(lambda item: f"- {_code(item[1])}: ", lines), *paragraphs[n_items:]])


def _code(names: str) -> str:
    return ", ".join(f"`{name.strip()}`" for name in names.split(","))


def _classes(parent: Any) -> Any:
    for member in parent.members.values():
        if not member.is_alias and (member.is_module or member.is_class):
            if member.is_class:
                yield member
            yield from _classes(member)


def _lineage(cls: Class) -> list[Class]:
    try:
        return [cls, *cls.mro()]
    except ValueError:
        return [cls]


def _is_from_fields(cls: Class) -> bool:
    paths = {base.canonical_path if isinstance(base, Expr) else str(base) for c in _lineage(cls) for base in c.bases}
    return bool(paths & FROM_FIELDS)


def _set_constructor(cls: Class) -> None:
    """What a class declares itself, then what it shares, as `inspect.signature` shows it."""
    found: dict[str, Parameter] = {}
    for owner in _lineage(cls):
        for parameter in _fields(owner):
            found.setdefault(parameter.name, parameter)
    named = [p for p in found.values() if p.kind is ParameterKind.keyword_only]
    positional = [p for p in found.values() if p.kind is not ParameterKind.keyword_only]
    own = Parameter("self", kind=ParameterKind.positional_or_keyword)
    cls.set_member("__init__", Function("__init__", parameters=Parameters(own, *positional, *named), parent=cls))


def _fields(cls: Class) -> list[Parameter]:
    kind, fields = ParameterKind.positional_or_keyword, []
    for member in cls.members.values():
        if not isinstance(member, Attribute) or member.annotation is None or "property" in member.labels:
            continue
        if isinstance(member.annotation, Expr) and member.annotation.canonical_path == "dataclasses.KW_ONLY":
            kind = ParameterKind.keyword_only
        elif not _is_of_the_class(member) and not member.name.startswith("_"):
            fields.append(Parameter(member.name, annotation=member.annotation, kind=kind, default=_default(member)))
    return fields


def _default(member: Attribute) -> Any:
    """The value that stands there, or the `default` of a field with options."""
    if not isinstance(member.value, ExprCall) or not str(member.value.function).endswith("field"):
        return member.value
    options = {argument.name: argument.value for argument in member.value.arguments if hasattr(argument, "name")}
    return options.get("default")


def _is_of_the_class(member: Attribute) -> bool:
    """Whether it is a ClassVar, which is no field: griffe labels those as attributes of the class alone."""
    return "class-attribute" in member.labels and "instance-attribute" not in member.labels
