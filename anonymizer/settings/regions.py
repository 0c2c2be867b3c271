"""How regions are formed, and how long the groups and pseudonyms in them last."""

from bisect import bisect_right
from typing import Annotated, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from anonymizer.domain.region_modes import RegionMode, mode_named
from anonymizer.settings.base import (
    LESS_IS_WEAKER,
    AtLeastOne,
    Group,
    NonEmpty,
    NotNegative,
    Positive,
    Reloadable,
)


def _k_falls(old: "AdkaSettings", new: "AdkaSettings", _: str) -> bool:
    densities = (0, *old.density_steps, *new.density_steps)
    return any(new.k_at(density) < old.k_at(density) for density in densities)


class AdkaSettings(Group):
    """ADKA: k by local density, `k_values[i]` if the density is below `density_steps[i]`."""

    density_steps: Annotated[tuple[AtLeastOne, ...], Reloadable(_k_falls)] = (4, 10)
    """Densities, in devices near a place, from which on the next k holds."""
    k_values: Annotated[tuple[AtLeastOne, ...], Reloadable(_k_falls)] = (10, 5, 2)
    """The k of each range of densities, the sparsest first: how many devices share a region."""
    k_floor: Annotated[int, Field(ge=2)] = 2
    """The least k, whatever the density."""

    @model_validator(mode="after")
    def _steps_fit_values(self) -> Self:
        if len(self.k_values) != len(self.density_steps) + 1:
            raise ValueError("k_values must have one value more than density_steps")
        if list(self.density_steps) != sorted(set(self.density_steps)):
            raise ValueError("density_steps must rise")
        if list(self.k_values) != sorted(self.k_values, reverse=True):
            raise ValueError("k_values must not rise: sparse places need the larger k")
        return self

    def k_at(self, density: int) -> int:
        """Return the k of a density."""
        return max(self.k_floor, self.k_values[bisect_right(self.density_steps, density)])


_LONGEST_SETTLE_S = 5.0
_ROTATE_S = 300.0
Districts = Literal[1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024]
"""Numbers of districts."""


class RegionSettings(Group):
    """How cloaking regions are formed."""

    mode: Annotated[RegionMode, BeforeValidator(mode_named)] = "session"
    """`session`: at least k devices share the whole life of a pseudonym. `snapshot`: at least k
    devices publish the identical region at each instant. `adka`: ADKA as published, over the
    junctions of the network as loaded (`bfs` means the same); its regions hold k devices but reveal
    which of them published."""
    cloak: NonEmpty | None = None
    """Name of an installed plug-in (entry point `anonymizer.cloaks`) that forms the groups. They
    are verified by the promise of `mode`; one that breaks it is suppressed. None: by `mode`."""
    districts: Districts = 1
    """Number of fixed parts into which the network is cut. Groups are formed within one part, so
    that several workers can keep some parts each. 1: the network is not cut."""
    max_nodes: AtLeastOne | None = None
    """A region that would need more nodes is suppressed for all its devices. `session` forms groups
    within fixed parts of the network with at most so many. None: no limit."""
    min_nodes: AtLeastOne = 6
    """Least number of nodes of a region (`snapshot`, `session`)."""
    min_road_m: NotNegative = 0.0
    """Least length of road in a region, in metres (`snapshot`, `session`)."""
    place_devices: AtLeastOne = 4
    """How many devices share the place as which a member is published, the member included: those
    where it stands, and one for each other node of the place at which there are any. More make
    regions larger and devices harder to follow. One device more, counted likewise, shares the area
    around the place, three of the smallest places large, or the place itself if it is larger. In
    `session` half as many more (rounded down) where a quarter of the published devices or more
    stand still, or may: nobody knows in the first minute, and of an id that changes while it is
    younger. 1: places are as small as `min_nodes` allows (`snapshot`, `session`)."""
    k_extra: Annotated[int, Field(ge=0), LESS_IS_WEAKER] = 0
    """Members of a group beyond k: so many of its devices may belong to the adversary
    (`snapshot`, `session`). Safe counts hold as many devices beyond `counts.k` in each figure."""

    @property
    def area_devices(self) -> int:
        """How many devices share the area around a place."""
        return self.place_devices + (self.place_devices > 1)

    @model_validator(mode="after")
    def _bounds_fit(self) -> Self:
        if self.mode != "adka" and self.max_nodes and self.max_nodes < self.min_nodes:
            raise ValueError("max_nodes must not be below min_nodes")
        return self


class SessionSettings(Group):
    """The lifetime of groups and pseudonyms, and how often a group publishes."""

    n_cells: ClassVar[int] = 8
    """Parts of the network whose epochs begin at different times; fewer where devices are few."""
    epoch_s: Positive = 60.0
    """Longest lifetime of a group and its pseudonyms. A longer one lets analysts follow a
    pseudonym for longer, but makes regions larger and newcomers wait longer. In the modes `adka`
    and `snapshot`, in which groups do not last: after how long every device gets a new pseudonym,
    300 unless set."""
    beat_s: NotNegative = 6.0
    """How often a group of the smallest places publishes, whether its members report or not;
    positions wait until then, and of several of one device the newest is published. If the largest
    place of a group is n times as large, because devices are few, it publishes once in √n beats (in
    a third of that, at least one, while fewer than a quarter of the published devices stand still)
    or a little more rarely, at equal distances over its life. A shorter beat tells more about where
    devices drive. The first groups are formed a beat after the first position, at most 5 s, or
    once enough devices count. 0: a group publishes whenever a member reports, which also tells
    when."""

    @property
    def rotate_s(self) -> float:
        """After how long every device gets a new pseudonym in modes in which groups do not last."""
        return self.epoch_s if "epoch_s" in self.model_fields_set else _ROTATE_S

    @property
    def settle_s(self) -> float:
        """How long after the first position the first groups are formed."""
        return min(_LONGEST_SETTLE_S, self.beat_s)
