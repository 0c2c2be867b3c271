"""Map of an ADKA experiment: the region of the first run on its network, red on blue."""

from dataclasses import dataclass
from pathlib import Path

import networkx as nx
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from scipy.spatial import KDTree

from anonymizer.algorithms.geodesy import EARTH_RADIUS_M
from anonymizer.app.plots import BLUE, INK, LIGHT, RED, plot
from anonymizer.domain.arrays import BoolArray, FloatArray, Int32Array, IntArray
from anonymizer.domain.network import RoadNetwork
from experiments.adka_experiment import Experiment

SURROUNDINGS = 60
"""Number of nodes that a map shows around its subject, unless it shows the whole network."""
_MAP_IN, _SIDE_IN, _MARGIN_IN, _TITLE_IN = 6.6, 2.3, 0.15, 0.4
"""Sizes on paper: side of the square map, width of the panels next to it, margins, title."""
_LARGEST_PT, _NUMBERED_PT, _RING_PT, _NAME_PT = 36.0, 14.0, 8.0, 8.0
"""Diameters of the largest node and of the smallest node that can contain a number; additional
diameter of the ring around the target; font size of names."""


@dataclass(frozen=True, slots=True, eq=False)
class Window:
    """A square in the plane."""

    centre: FloatArray
    """Shape (2,)."""
    half: float
    """Half the length of a side, > 0."""

    def contains(self, xy: FloatArray) -> BoolArray:
        """Return which points, shape (n, 2), lie inside; points at NaN do not."""
        inside: BoolArray = np.all(np.abs(xy - self.centre) <= self.half, axis=1)
        return inside

    def touches(self, segments: FloatArray) -> BoolArray:
        """Return which segments, shape (n, 2, 2), may cross the square; those at NaN do not."""
        low, high = segments.min(axis=1), segments.max(axis=1)
        near = (low <= self.centre + self.half) & (high >= self.centre - self.half)
        touching: BoolArray = near.all(axis=1)
        return touching


def place_nodes(network: RoadNetwork, subject: Int32Array) -> FloatArray:
    """Return the positions of nodes in the plane, shape (nodes, 2).

    With coordinates, they are in metres east and north of the centre of the network, O(nodes).
    Without, the subject and its surroundings are laid out by their roads, and all other nodes are
    at NaN; this is quadratic in the nodes laid out and takes seconds for 1,000.
    """
    if network.has_coordinates:
        return _plane(network)
    graph = _surroundings(network, subject)
    xy = np.full((network.n_nodes, 2), np.nan)
    for node, place in nx.kamada_kawai_layout(graph).items():
        xy[node] = place
    return xy


def window_around(xy: FloatArray, subject: Int32Array) -> Window:
    """Return the square around the subject and its surroundings, or around all placed nodes."""
    placed = xy[~np.isnan(xy).any(axis=1)]
    shown = placed if len(placed) <= len(subject) + SURROUNDINGS else xy[subject]
    low, high = shown.min(axis=0), shown.max(axis=0)
    centre = (low + high) / 2
    reach = np.sort(np.abs(placed - centre).max(axis=1))[:SURROUNDINGS][-1]
    half = max(float((high - low).max()) / 2, float(reach))
    # With space for labels of nodes at the edge. All nodes may be at one point.
    return Window(centre, 1.2 * half or 1.0)


def _plane(network: RoadNetwork) -> FloatArray:
    lat, lon = network.lat - network.lat.mean(), network.lon - network.lon.mean()
    east = lon * np.cos(np.radians(network.lat.mean()))
    xy: FloatArray = np.radians(np.column_stack([east, lat])) * EARTH_RADIUS_M
    return xy


def _surroundings(network: RoadNetwork, subject: Int32Array) -> "nx.Graph[int]":
    """Return the graph of the subject and the nodes around it, breadth first."""

    def neighbours(node: int) -> list[int]:
        first = network.first_arc_of
        found: list[int] = network.neighbour_of[first[node] : first[node + 1]].tolist()
        return found

    shown: list[int] = subject.tolist()
    seen = set(shown)
    for node in shown:  # grows during the loop
        if len(shown) >= len(subject) + SURROUNDINGS:
            break
        fresh = [v for v in neighbours(node) if v not in seen]
        seen.update(fresh)
        shown.extend(fresh)
    graph: nx.Graph[int] = nx.Graph()
    graph.add_nodes_from(shown)
    graph.add_edges_from((v, w) for v in shown for w in neighbours(v) if w in seen)
    return graph


@dataclass(frozen=True, slots=True, eq=False)
class _Map:
    """The part of the network that is drawn."""

    target: int
    region: Int32Array
    shown: IntArray
    """`target`, `region`, `shown`: node indices of the target and region of the first run, and of
    all visible nodes."""
    xy: FloatArray
    window: Window
    """`xy`, `window`: positions of all nodes, shape (nodes, 2), and the visible square."""
    pt: float
    apart_pt: float
    """`pt`, `apart_pt`: points on paper per unit of the plane, and the median distance between
    visible neighbours."""

    @classmethod
    def of(cls, experiment: Experiment) -> "_Map":
        region, target = experiment.runs.region(0), experiment.runs.target[:1]
        subject = np.union1d(region, target)
        xy = place_nodes(experiment.network, subject)
        window = window_around(xy, subject)
        shown = np.flatnonzero(window.contains(xy))
        # The nearest node is the node itself; the next one of a single node is infinitely far.
        apart = np.asarray(KDTree(xy[shown]).query(xy[shown], k=2)[0])
        pt = _MAP_IN * 72 / (2 * window.half)
        return cls(
            target=int(target[0]),
            region=region,
            shown=shown,
            xy=xy,
            window=window,
            pt=pt,
            apart_pt=float(np.median(apart[:, 1])) * pt,
        )

    @property
    def numbered(self) -> bool:
        """Whether nodes contain their number of users; otherwise their size shows it."""
        return self.apart_pt >= 2 * _NUMBERED_PT


def region_on_network(experiment: Experiment, path: Path) -> None:
    """Draw the region of the first run, and of a large network only its surroundings.

    For the cost see `place_nodes`.
    """
    network = experiment.network
    drawn = _Map.of(experiment)
    side_left_in = 2 * _MARGIN_IN + _MAP_IN
    width_in, height_in = side_left_in + _SIDE_IN + _MARGIN_IN, _MARGIN_IN + _MAP_IN + _TITLE_IN
    with plot(path, width_in=width_in, height_in=height_in) as figure:
        figure.set_layout_engine("none")  # the panels have fixed places
        axes = _panel(figure, _MARGIN_IN, _MARGIN_IN, _MAP_IN, _MAP_IN)
        axes.set_title(_title(experiment))
        _draw_roads(axes, network, drawn)
        _draw_nodes(axes, experiment, drawn)
        legend = _panel(figure, side_left_in, _MARGIN_IN + _SIDE_IN, _SIDE_IN, _MAP_IN - _SIDE_IN)
        _draw_legend(legend, experiment, drawn)
        if network.has_coordinates and not drawn.window.contains(drawn.xy).all():
            _draw_whole(
                _panel(figure, side_left_in, _MARGIN_IN, _SIDE_IN, _SIDE_IN), network, drawn
            )


def _panel(figure: Figure, left: float, bottom: float, width: float, height: float) -> Axes:
    """Return axes without scales at a place given in inches."""
    wide, high = figure.get_size_inches()
    axes = figure.add_axes((left / wide, bottom / high, width / wide, height / high))
    axes.set_axis_off()
    return axes


def _roads(network: RoadNetwork) -> IntArray:
    """Return the ends of every road, shape (roads, 2)."""
    tail = np.repeat(np.arange(network.n_nodes), np.diff(network.first_arc_of))
    arcs = np.column_stack([tail, network.neighbour_of])
    return arcs[tail < network.neighbour_of]


def _draw_lines(axes: Axes, segments: FloatArray, *, color: str, width: float) -> None:
    axes.add_collection(LineCollection(list(segments), colors=color, linewidths=width))


def _draw_roads(axes: Axes, network: RoadNetwork, drawn: _Map) -> None:
    ends = _roads(network)
    segments = drawn.xy[ends]
    in_sight = drawn.window.touches(segments)
    in_region = np.isin(ends, drawn.region).all(axis=1)
    _draw_lines(axes, segments[in_sight & ~in_region], color=LIGHT, width=1.5)
    _draw_lines(axes, segments[in_region], color=RED, width=3 if drawn.numbered else 2)
    (x, y), half = drawn.window.centre, drawn.window.half
    axes.set(xlim=(x - half, x + half), ylim=(y - half, y + half))


def _draw_nodes(axes: Axes, experiment: Experiment, drawn: _Map) -> None:
    n_at = experiment.users.n_at
    if drawn.numbered:
        size_pt = np.full(len(n_at), min(drawn.apart_pt / 2, _LARGEST_PT))
    else:
        size_pt = np.minimum(3.5 + 4 * np.sqrt(n_at), _LARGEST_PT)
    others = np.setdiff1d(drawn.shown, drawn.region)
    for nodes, color in ((others, BLUE), (drawn.region, RED)):
        axes.scatter(
            drawn.xy[nodes, 0],
            drawn.xy[nodes, 1],
            s=size_pt[nodes] ** 2,
            color=color,
            linewidth=0,
            zorder=2,
        )
    axes.scatter(
        drawn.xy[drawn.target, 0],
        drawn.xy[drawn.target, 1],
        s=(size_pt[drawn.target] + _RING_PT) ** 2,
        facecolor="none",
        edgecolor=INK,
        linewidth=2,
        zorder=2,
    )
    if drawn.numbered:
        _write_labels(axes, experiment, drawn, size_pt=float(size_pt[0]))


def _write_labels(axes: Axes, experiment: Experiment, drawn: _Map, *, size_pt: float) -> None:
    """Write the number of users into each node, and the name next to it."""
    shown = drawn.shown
    for node in shown:
        axes.annotate(
            f"{experiment.users.n_at[node]}",
            drawn.xy[node],
            ha="center",
            va="center_baseline",
            color="white",
            fontsize=0.45 * size_pt,
            fontweight="bold",
            clip_on=True,
        )
    if not _names_fit(experiment.network, drawn):
        return
    corners = _free_corners(drawn, size_pt=size_pt, name_pt=_name_pt(experiment.network, drawn))
    for node, (right, up) in zip(shown, corners, strict=True):
        axes.annotate(
            f"{experiment.network.node_id[node]}",
            drawn.xy[node],
            xytext=(_offset_pt(size_pt) * right, _offset_pt(size_pt) * up),
            textcoords="offset points",
            ha="left" if right > 0 else "right",
            va="bottom" if up > 0 else "top",
            color=INK,
            fontsize=_NAME_PT,
            clip_on=True,
        )


def _offset_pt(size_pt: float) -> float:
    """Return the offset of a name from its node, just outside the ring of the target."""
    return 0.38 * size_pt + _RING_PT / 2


def _name_pt(network: RoadNetwork, drawn: _Map) -> float:
    """Return the approximate width of the longest visible name."""
    return 0.6 * _NAME_PT * max(len(str(name)) for name in network.node_id[drawn.shown])


def _names_fit(network: RoadNetwork, drawn: _Map) -> bool:
    return drawn.numbered and _name_pt(network, drawn) <= 0.6 * drawn.apart_pt


def _free_corners(drawn: _Map, *, size_pt: float, name_pt: float) -> IntArray:
    """Return a corner of each node where no other node covers its name, (right, up) as +-1."""
    corners = np.array([(1, 1), (-1, 1), (1, -1), (-1, -1)])
    at_pt = drawn.xy[drawn.shown] * drawn.pt
    middle_pt = at_pt[:, None] + corners * (_offset_pt(size_pt) + np.array([name_pt, _NAME_PT]) / 2)
    apart_pt, nearest = map(np.asarray, KDTree(at_pt).query(middle_pt, k=2))
    own = nearest[..., 0] == np.arange(len(at_pt))[:, None]
    clearance_pt = np.where(own, apart_pt[..., 1], apart_pt[..., 0])
    free: IntArray = corners[np.argmax(clearance_pt > (size_pt + name_pt) / 2, axis=1)]
    return free


def _draw_legend(axes: Axes, experiment: Experiment, drawn: _Map) -> None:
    """Draw the legend of the dots, with dots of one readable size, and what a fixed k gives."""
    network = experiment.network
    for label, fill, edge in (
        ("region", RED, RED),
        ("all other nodes", BLUE, BLUE),
        ("target", "none", INK),
    ):
        axes.scatter([], [], s=110, facecolor=fill, edgecolor=edge, linewidth=2, label=label)
    lines = ["In a node: its users." if drawn.numbered else "Larger nodes have more users."]
    if _names_fit(network, drawn):
        lines.append("Next to it: its name.")
    if network.has_coordinates:
        lines.append(f"The map is {2 * drawn.window.half:,.0f} m wide.")
    for k, runs in experiment.fixed.items():
        here = np.flatnonzero(runs.target == drawn.target)
        size = int(runs.region_size[here[0]]) if len(here) else 0
        if size:
            lines.append(f"With k = {k} for all: {size:,} node{'s' if size > 1 else ''}.")
    title = "\n".join(lines) + "\n"
    axes.legend(loc="upper left", borderaxespad=0, title=title, alignment="left")


def _draw_whole(axes: Axes, network: RoadNetwork, drawn: _Map) -> None:
    _draw_lines(axes, drawn.xy[_roads(network)], color=BLUE, width=0.2)
    x, y = drawn.window.centre - drawn.window.half
    side = 2 * drawn.window.half
    axes.add_patch(
        Rectangle((x, y), side, side, fill=False, edgecolor=RED, linewidth=1.5, zorder=3)
    )
    axes.set_aspect("equal")
    axes.autoscale_view()
    axes.set_title("The whole network", fontsize=10)


def _title(experiment: Experiment) -> str:
    runs = experiment.runs
    name, size = experiment.network.node_id[runs.target[0]], runs.region_size[0]
    asked = f"Target {name}, density {runs.density[0]}, k = {runs.k[0]}: "
    if not runs.cloaked[0]:
        return f"Reproduced. {asked}suppressed, {runs.outcome(0).replace('_', ' ')}"
    nodes = "1 node" if size == 1 else f"{size:,} nodes"
    return f"Reproduced. {asked}{runs.users_in_region[0]} users in a region of {nodes}"
