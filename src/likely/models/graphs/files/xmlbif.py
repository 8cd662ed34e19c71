"""XMLBIF 0.3: variables with outcomes, definitions with tables whose last axis is the variable itself."""

from __future__ import annotations

import xml.sax
from dataclasses import dataclass, field
from xml.sax.saxutils import escape

import numpy as np

from likely.models.graphs.files.described import Described, Malformed, check_sums

_DEEPEST = 50  # elements inside each other; a network needs four, and an attack may have millions


@dataclass
class _Element:
    """An element with its line."""

    tag: str
    line: int
    text: str = ""
    children: list[_Element] = field(default_factory=list)

    def all(self, tag: str) -> list[_Element]:
        return [child for child in self.children if child.tag == tag]


class _Reader(xml.sax.ContentHandler):
    def __init__(self) -> None:
        super().__init__()
        self.root, self.open = _Element("", 1), [_Element("", 1)]
        self.open[0] = self.root

    def setDocumentLocator(self, locator):
        self.locator = locator

    def startElement(self, name, attrs):
        if len(self.open) > _DEEPEST:
            raise xml.sax.SAXException("elements are nested too deeply")
        element = _Element(name.upper(), self.locator.getLineNumber())
        self.open[-1].children.append(element)
        self.open.append(element)

    def endElement(self, name):
        self.open.pop()

    def characters(self, content):
        self.open[-1].text += content


def read_xmlbif(path: str, text: str) -> Described:
    """The network that an XMLBIF text describes."""
    if "<!ENTITY" in text:
        raise Malformed(f"{path}: a network needs no entities, and a file that declares some is not read.")
    reader = _Reader()
    try:
        xml.sax.parseString(text.encode(), reader)
    except xml.sax.SAXParseException as error:
        raise Malformed(f"{path}, line {error.getLineNumber()}: expected XML, {error.getMessage()}.") from None
    except xml.sax.SAXException as error:
        raise Malformed(f"{path}: {error.getMessage()}.") from None
    except (LookupError, ValueError) as error:  # of an encoding that its first line names
        raise Malformed(f"{path}, line 1: {error}; write the file as UTF-8.") from None
    bif = _one(path, reader.root, "BIF")
    network_element = _one(path, bif, "NETWORK")
    network = Described()
    names = network_element.all("NAME")
    network.name = names[0].text.strip() if names else "network"
    for element in network_element.all("VARIABLE"):
        name = _one(path, element, "NAME").text.strip()
        states = [outcome.text.strip() for outcome in [*element.all("OUTCOME"), *element.all("VALUE")]]
        if not states or len(set(states)) != len(states):
            raise _wrong(path, element, f"different outcomes of {name!r}")
        if name in network.states:
            raise _wrong(path, element, f"a new variable; {name!r} was declared before")
        network.states[name] = states
    for element in [*network_element.all("DEFINITION"), *network_element.all("PROBABILITY")]:
        network.tables.append(_definition(path, network, element))
    return network


def _definition(path: str, network: Described, element: _Element) -> tuple[list[str], np.ndarray]:
    child = _one(path, element, "FOR").text.strip()
    scope = [*(given.text.strip() for given in element.all("GIVEN")), child]
    for name in scope:
        if name not in network.states:
            raise _wrong(path, element, network.unknown(name))
    if len(set(scope)) != len(scope):
        raise _wrong(path, element, f"each variable once in the definition of {child!r}")
    table = _one(path, element, "TABLE")
    found = table.text.split()
    if len(found) != network.size(scope):
        raise _wrong(path, table, f"{network.size(scope)} numbers for {child!r}, found {len(found)}")
    try:
        values = np.array([float(token) for token in found]).reshape(network.shape(scope))
    except ValueError:
        raise _wrong(path, table, f"numbers for {child!r}") from None
    wrong = check_sums(child, values)
    if wrong:
        raise Malformed(f"{path}, line {table.line}: {wrong}")
    return scope, values


def _one(path: str, element: _Element, tag: str) -> _Element:
    found = element.all(tag)
    if len(found) != 1:
        raise _wrong(path, element, f"one <{tag}> inside <{element.tag or 'the document'}>, found {len(found)}")
    return found[0]


def _wrong(path: str, element: _Element, expected: str) -> Malformed:
    return Malformed(f"{path}, line {element.line}: expected {expected}.")


def write_xmlbif(network: Described) -> str:
    """The network as XMLBIF text; numbers with as many digits as give them back to the bit."""
    for name in (network.name, *network.states, *(s for states in network.states.values() for s in states)):
        if name != name.strip() or any(ord(character) < 32 for character in name):
            raise ValueError(f"XMLBIF cannot hold the name {name!r}: rename it.")
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', '<BIF VERSION="0.3">', "<NETWORK>"]
    lines.append(f"<NAME>{escape(network.name)}</NAME>")
    for name, states in network.states.items():
        outcomes = "".join(f"<OUTCOME>{escape(state)}</OUTCOME>" for state in states)
        lines.append(f'<VARIABLE TYPE="nature"><NAME>{escape(name)}</NAME>{outcomes}</VARIABLE>')
    for scope, table in network.tables:
        *parents, child = (escape(name) for name in scope)
        given = "".join(f"<GIVEN>{parent}</GIVEN>" for parent in parents)
        values = " ".join(map(repr, table.ravel().tolist()))
        lines.append(f"<DEFINITION><FOR>{child}</FOR>{given}<TABLE>{values}</TABLE></DEFINITION>")
    return "\n".join([*lines, "</NETWORK>", "</BIF>"]) + "\n"
