"""Settings of what analysts get besides regions: their shapes, the network, and counts."""

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from anonymizer.settings.base import Group, NotNegative, OutputTopic, Positive

Shape: TypeAlias = Literal["nodes", "roads", "h3", "bbox"]


class ShapeSettings(Group):
    """What messages say of the place of a region, besides the names of its nodes.

    `nodes`: nothing more. `roads`: `geometry`, the roads between its nodes as a GeoJSON
    MultiLineString. `h3`: `cells`, the H3 cells of its nodes (extra `h3`). `bbox`: the box around
    its nodes, as west, south, east and north.
    """

    regions: Shape = "nodes"
    """Of the regions of mobile devices."""
    fixed: Shape = "nodes"
    """Of the regions of fixed devices."""
    h3_resolution: Annotated[int, Field(ge=0, le=15)] = 9
    """Resolution of the H3 cells; 9 has edges of about 200 m."""


class PublicNetworkSettings(Group):
    """The road network, published for those who read regions.

    It is retained: a description on `topic`, and GeoJSON on `topic` with `/parts/0`, `/parts/1`,
    ... behind it. It is public in any case: privacy zones are not shown.
    """

    enabled: bool = True
    topic: OutputTopic = "anonymizer/network"
    part_bytes: Annotated[int, Field(ge=4096, le=268_000_000)] = 120_000
    """Largest size of a part. Brokers limit packets; that of AWS IoT Core is 128 KiB."""


class CurrentSettings(Group):
    """The groups that live now, retained, for subscribers that come later."""

    every_s: NotNegative = 0.0
    """How often they are published. 0: never."""
    topic: OutputTopic = "cloaked/current"
    """They are on this topic with `/0`, `/1`, ... behind it."""
    part_bytes: Annotated[int, Field(ge=4096, le=268_000_000)] = 120_000
    """Largest size of a part, unless a single group needs more."""


class CountSettings(Group):
    """Safe counts: how many devices were where, how fast, and where they came from.

    They need no pseudonyms. Each figure is about at least k devices, and numbers of devices are
    multiples of k. They are made of true positions, so they add to what the regions tell.
    """

    enabled: bool = False
    topic: OutputTopic = "cloaked/counts"
    """The cells are retained on this topic with `/cells` behind it, as GeoJSON."""
    every_s: Positive = 60.0
    """Length of an interval."""
    k: Annotated[int, Field(ge=2)] = 10
    """Fewest devices in any figure."""
    cells: Literal[16, 32, 64, 128, 256, 512] = 128
    """Number of cells of the network, of equally many nodes each. Neighbouring cells in which too
    few devices are seen are counted together."""
    most_speed_mps: Positive = 40.0
    """Faster devices count as this fast, so that one of them cannot move a mean by much."""
    speed_step_mps: Positive = 1.0
    """Mean speeds are rounded to this."""
    most_dwell_s: Positive = 600.0
    """Longer stays count as this long."""
    dwell_step_s: Positive = 10.0
    """Mean stays are rounded to this."""
