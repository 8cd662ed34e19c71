"""A graph over named nodes, directed, undirected or partly directed, and what follows from it alone.

A directed edge a → b says that a is a parent of b. Immutable: what changes a graph returns another. Kept as
dictionaries of sets, so that a question about a node costs its neighbours, and one about the whole its edges.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

from likely.models.graphs.graph import equivalence, separation
from likely.models.graphs.graph.reading import GraphError, cycle_error, read_edges, unknown_node

Edge = tuple[str, str]
Names = str | Iterable[str]


class Graph:
    """Nodes by name, with directed edges, undirected edges, or both.

    Parameters
    ----------
    edges : pairs (parent, child); a dictionary from each node to its children; a networkx graph, directed or not;
        another `Graph`; or text, "smoke -> cancer <- gene; cancer -- x-ray".
    undirected : pairs without a direction.
    nodes : names of nodes, which fixes their order and adds those that have no edge.
    directed : False reads `edges` as undirected.

    Examples
    --------
    >>> graph = Graph([("rain", "wet"), ("sprinkler", "wet"), ("wet", "slippery")])
    >>> graph.parents("wet"), graph.markov_blanket("rain")
    (('rain', 'sprinkler'), ('wet', 'sprinkler'))
    >>> graph.separated("rain", "sprinkler"), graph.separated("rain", "sprinkler", given="slippery")
    (True, False)
    >>> print(graph.separated("rain", "sprinkler", given="slippery", why=True))
    open: rain → wet ← sprinkler (wet is a collider, and its descendant slippery is observed)
    """

    def __init__(self, edges: Any = (), *, undirected: Any = (), nodes: Iterable[Any] = (), directed: bool = True):
        given = read_edges(edges, directed)
        lines = [*given.undirected, *read_edges(undirected, False).undirected]
        ends = [name for edge in (*given.directed, *lines) for name in edge]
        self.nodes: tuple[str, ...] = tuple(dict.fromkeys([*map(str, nodes), *given.nodes, *ends]))
        self._children: dict[str, dict[str, None]] = {name: {} for name in self.nodes}
        self._parents: dict[str, dict[str, None]] = {name: {} for name in self.nodes}
        self._beside: dict[str, dict[str, None]] = {name: {} for name in self.nodes}
        for parent, child in given.directed:
            self._children[parent][child] = None
            self._parents[child][parent] = None
        for a, b in lines:
            self._beside[a][b] = self._beside[b][a] = None
        self._check()

    def _check(self) -> None:
        for name in self.nodes:
            around = (self._children[name], self._parents[name], self._beside[name])
            if any(name in some for some in around):
                raise GraphError(f"node {name!r} has an edge to itself: remove it.")
            twice = next((other for other in around[0] if other in around[1] or other in around[2]), None)
            if twice is not None:
                raise GraphError(f"nodes {name!r} and {twice!r} have two edges between them: keep one.")
        if self.directed_edges:
            self.topological_order  # noqa: B018 - which names the nodes of a cycle

    # ---------------------------------------------------------------- what it is
    @cached_property
    def directed_edges(self) -> tuple[Edge, ...]:
        """The pairs (parent, child)."""
        return tuple((parent, child) for parent in self.nodes for child in self._children[parent])

    @cached_property
    def undirected_edges(self) -> tuple[Edge, ...]:
        """The pairs without a direction, each once, the node that stands first in `nodes` first."""
        place = {name: i for i, name in enumerate(self.nodes)}
        return tuple((a, b) for a in self.nodes for b in self._beside[a] if place[a] < place[b])

    @property
    def edges(self) -> tuple[Edge, ...]:
        """All edges: the directed ones, then the others."""
        return (*self.directed_edges, *self.undirected_edges)

    @property
    def is_directed(self) -> bool:
        """Whether every edge has a direction; a graph without edges is both."""
        return not self.undirected_edges

    @property
    def is_undirected(self) -> bool:
        """Whether no edge has a direction."""
        return not self.directed_edges

    def __eq__(self, other: object) -> bool:
        """Equal nodes and edges, in whatever order."""
        if not isinstance(other, Graph):
            return NotImplemented
        return self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self._identity)

    @cached_property
    def _identity(self) -> tuple:
        return (
            frozenset(self.nodes),
            frozenset(self.directed_edges),
            frozenset(map(frozenset, self.undirected_edges)),
        )

    def __len__(self) -> int:
        return len(self.nodes)

    def __contains__(self, name: object) -> bool:
        return str(name) in self._children

    def __repr__(self) -> str:
        kinds = [(len(self.directed_edges), "directed"), (len(self.undirected_edges), "undirected")]
        parts = [f"{n} {kind} edge{'s' if n != 1 else ''}" for n, kind in kinds if n]
        return f"Graph({len(self.nodes)} nodes, {' and '.join(parts) or 'no edge'})"

    # ------------------------------------------------------------------ around a node
    def parents(self, name: Any) -> tuple[str, ...]:
        """The nodes with an edge to it, in the order of `nodes`."""
        return self._in_order(self._parents[self._known(name)])

    def children(self, name: Any) -> tuple[str, ...]:
        """The nodes that it has an edge to."""
        return self._in_order(self._children[self._known(name)])

    def neighbours(self, name: Any) -> tuple[str, ...]:
        """The nodes beside it on an edge of any kind."""
        name = self._known(name)
        return self._in_order({*self._parents[name], *self._children[name], *self._beside[name]})

    def ancestors(self, names: Names) -> tuple[str, ...]:
        """All nodes with a directed path to one of the names, these excepted."""
        return self._reached(names, self._parents)

    def descendants(self, names: Names) -> tuple[str, ...]:
        """All nodes to which a directed path leads from one of the names, these excepted."""
        return self._reached(names, self._children)

    def markov_blanket(self, name: Any) -> tuple[str, ...]:
        """The nodes that separate it from all others: neighbours, and other parents of its children."""
        name = self._known(name)
        others = {parent for child in self._children[name] for parent in self._parents[child]}
        return self._in_order({*self.neighbours(name), *others} - {name})

    # -------------------------------------------------------------------- the whole
    @cached_property
    def topological_order(self) -> tuple[str, ...]:
        """The nodes, parents before children, and otherwise as they stand in `nodes`."""
        place = {name: i for i, name in enumerate(self.nodes)}
        waiting = {name: len(parents) for name, parents in self._parents.items()}
        import heapq

        ready = [place[name] for name, n in waiting.items() if n == 0]
        order = []
        while ready:
            name = self.nodes[heapq.heappop(ready)]
            order.append(name)
            for child in self._children[name]:
                waiting[child] -= 1
                if waiting[child] == 0:
                    heapq.heappush(ready, place[child])
        if len(order) < len(self.nodes):
            raise cycle_error(self._parents, waiting)
        return tuple(order)

    @cached_property
    def skeleton(self) -> Graph:
        """The same edges without direction."""
        return Graph(undirected=self.edges, nodes=self.nodes)

    @cached_property
    def moral(self) -> Graph:
        """The undirected graph in which parents of a common child are joined: factors p(x | parents) are cliques."""
        self._all_directed("the moral graph")
        married = [
            (a, b) for name in self.nodes for i, a in enumerate(self.parents(name)) for b in self.parents(name)[:i]
        ]
        return Graph(undirected=[*self.edges, *married], nodes=self.nodes)

    def triangulated(self, n_states: Mapping[str, int] | None = None) -> Graph:
        """An undirected graph with edges added until each cycle of four or more nodes has a chord.

        A directed graph is made moral first. The order of elimination is the best of several, by the size of the
        tables that it makes, for which `n_states` says how many values each node has; 2 without.
        """
        from likely.models.graphs.inference.elimination import eliminate_graph

        found = eliminate_graph(self._as_undirected(), n_states)
        filled = [(a, b) for clique in found for i, a in enumerate(clique) for b in clique[:i]]
        return Graph(undirected=filled, nodes=self.nodes)

    def cliques(self, n_states: Mapping[str, int] | None = None) -> tuple[tuple[str, ...], ...]:
        """The largest cliques of the triangulated graph, which the tables of exact inference range over."""
        from likely.models.graphs.inference.elimination import eliminate_graph

        sets = [frozenset(clique) for clique in eliminate_graph(self._as_undirected(), n_states)]
        whole = [one for one in sets if not any(one < other for other in sets)]
        return tuple(self._in_order(clique) for clique in dict.fromkeys(whole))

    def separated(self, a: Names, b: Names, given: Names = (), *, why: bool = False) -> bool | separation.Separation:
        """Whether the graph says that a and b are independent given some others.

        In an undirected graph they are when every path between them meets an observed node. In a directed graph
        (d-separation) a path is blocked by an observed node that is no collider, and by a collider → c ← on it unless c
        or a descendant of c is observed. Of a partly directed graph, which must be an equivalence class as
        `equivalence_class` returns it, one member answers for all.

        Parameters
        ----------
        a, b, given : names, one or several each, no name in two of them.
        why : return a `Separation`, which is true or false as the answer is, and names an open path where there is one.
        """
        sides = [self._set(names) for names in (a, b, given)]
        found = separation.separation(self.member() if self._is_partly else self, *sides)
        return found if why else bool(found)

    def equivalence_class(self) -> Graph:
        """The class of graphs that say the same independences (CPDAG): edges that all members share are directed."""
        self._all_directed("the equivalence class")
        return equivalence.equivalence_class(self)

    def member(self) -> Graph:
        """A directed graph of the equivalence class that this partly directed graph stands for."""
        found = equivalence.consistent_extension(self)
        if found is None or equivalence.equivalence_class(found) != self:
            raise GraphError(
                "this partly directed graph is no equivalence class of directed ones, so its members need not agree: "
                "give every edge a direction, or take graph.equivalence_class() of a directed graph."
            )
        return found

    def structural_hamming_distance(self, other: Graph, *, of_classes: bool = False) -> int:
        """How many pairs of nodes have another edge, or another direction of it, in the other graph.

        With `of_classes` the equivalence classes of two directed graphs are compared, so that directions on which no
        data can decide do not count.
        """
        if set(self.nodes) != set(other.nodes):
            odd = sorted(set(self.nodes) ^ set(other.nodes))[0]
            raise GraphError(f"the graphs have different nodes, {odd!r} among them: compare graphs of the same nodes.")
        pair = [graph.equivalence_class() if of_classes else graph for graph in (self, other)]
        return equivalence.n_differences(*pair)

    # ---------------------------------------------------------------------- changes
    def with_edges(self, *edges: Edge) -> Graph:
        """The graph with directed edges added."""
        return Graph([*self.directed_edges, *edges], undirected=self.undirected_edges, nodes=self.nodes)

    def without_edges(self, *edges: Edge) -> Graph:
        """The graph with some edges, of either kind, taken away."""
        gone = {(str(a), str(b)) for a, b in edges}
        for edge in gone:
            if edge not in self.edges and edge[::-1] not in self.undirected_edges:
                raise GraphError(f"there is no edge {edge[0]!r} → {edge[1]!r} to take away.")
        lines = [edge for edge in self.undirected_edges if edge not in gone and edge[::-1] not in gone]
        return Graph([e for e in self.directed_edges if e not in gone], undirected=lines, nodes=self.nodes)

    def restricted(self, names: Names) -> Graph:
        """The graph of some of the nodes and the edges among them."""
        keep = self._set(names)
        inside = lambda edges: [edge for edge in edges if set(edge) <= keep]  # noqa: E731
        nodes = [name for name in self.nodes if name in keep]
        return Graph(inside(self.directed_edges), undirected=inside(self.undirected_edges), nodes=nodes)

    # --------------------------------------------------------------- to other forms
    def to_networkx(self) -> Any:
        """A `networkx.DiGraph`, or a `networkx.Graph` where no edge has a direction."""
        import networkx as nx

        if self.directed_edges and self.undirected_edges:
            raise GraphError("networkx has no partly directed graphs: take graph.member() or graph.skeleton first.")
        out = nx.DiGraph() if self.directed_edges else nx.Graph()
        out.add_nodes_from(self.nodes)
        out.add_edges_from(self.edges)
        return out

    def to_dot(self) -> str:
        """The graph as DOT text, which Graphviz draws."""
        name = lambda text: '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'  # noqa: E731
        lines = [f"  {name(node)};" for node in self.nodes]
        lines += [f"  {name(a)} -> {name(b)};" for a, b in self.directed_edges]
        lines += [f"  {name(a)} -> {name(b)} [dir=none];" for a, b in self.undirected_edges]
        return "digraph {\n" + "\n".join(lines) + "\n}\n"

    def to_json(self) -> dict[str, Any]:
        """A dictionary that JSON can hold, and `from_json` reads."""
        return {
            "nodes": list(self.nodes),
            "edges": [list(edge) for edge in self.directed_edges],
            "undirected": [list(edge) for edge in self.undirected_edges],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Graph:
        """The graph that `to_json` wrote."""
        return cls(
            [tuple(e) for e in data["edges"]], undirected=[tuple(e) for e in data["undirected"]], nodes=data["nodes"]
        )

    def draw(self, ax: Any = None, **look: Any) -> Any:
        """Draw the graph with matplotlib, directed ones in layers from parents to children; returns the axes.

        Parameters
        ----------
        ax : matplotlib axes; None makes a figure that is large enough for the names to be read.
        look : `labels`, `fill` (colours of nodes), `widths` and `colours` (of edges), each a dictionary; see
            `likely.models.graphs.graph.drawing.draw`.
        """
        from likely.models.graphs.graph.drawing import draw

        return draw(self, ax, **look)

    # --------------------------------------------------------------------- plumbing
    @property
    def _is_partly(self) -> bool:
        return bool(self.directed_edges and self.undirected_edges)

    def _known(self, name: Any) -> str:
        name = str(name)
        if name not in self._children:
            raise unknown_node(name, self.nodes)
        return name

    def _set(self, names: Names) -> set[str]:
        return {self._known(name) for name in ([names] if isinstance(names, str | int) else names)}

    def _in_order(self, names: Iterable[str]) -> tuple[str, ...]:
        names = set(names)
        if len(names) <= 1:
            return tuple(names)
        return tuple(sorted(names, key=self._place.__getitem__))

    @cached_property
    def _place(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.nodes)}

    def _reached(self, names: Names, step: Mapping[str, Iterable[str]]) -> tuple[str, ...]:
        start = self._set(names)
        seen, front = set(start), list(start)
        while front:
            for other in step[front.pop()]:
                if other not in seen:
                    seen.add(other)
                    front.append(other)
        return self._in_order(seen - start)

    def _as_undirected(self) -> Graph:
        return self.moral if self.is_directed and self.directed_edges else self.skeleton

    def _all_directed(self, what: str) -> None:
        if not self.is_directed:
            a, b = self.undirected_edges[0]
            raise GraphError(f"{what} needs every edge directed, and {a!r} — {b!r} is not: give it a direction.")


__all__ = ["Graph", "GraphError"]
