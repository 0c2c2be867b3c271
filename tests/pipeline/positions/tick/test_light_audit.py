"""The online intersection attack on single pseudonyms."""

import numpy as np

from anonymizer.domain.release import Release
from anonymizer.pipeline.positions.tick.flow_stats import LightAudit
from tests.algorithms.positions.releases import release_of
from tests.naive import Group


def see(watch: LightAudit, groups: list[Group], place: list[int], version: int = 0) -> None:
    plain = release_of(groups)
    release = Release(
        k=plain.k,
        first_node_of=plain.first_node_of,
        node=plain.node,
        first_member_of=plain.first_member_of,
        member=plain.member,
        version=np.full(len(plain.member), version),
    )
    watch.see(release, np.array(place, np.int32), n_nodes=9)


def remaining(watch: LightAudit) -> list[float]:
    """Return the candidates that are left of each pseudonym, divided by its k."""
    found: list[float] = watch.hidden_to_k().tolist()
    return found


def test_the_candidates_are_the_devices_inside_every_region_so_far() -> None:
    watch = LightAudit(np.array([0]))
    see(watch, [Group(2, [1, 2], [0, 1])], [1, 2, 2, -1])
    assert remaining(watch) == [3 / 2]
    see(watch, [Group(2, [1, 2], [0, 1])], [1, 2, 5, 1])
    assert remaining(watch) == [2 / 2]
    see(watch, [Group(2, [5], [0, 1])], [5, 1, 5, 5, 5])
    assert remaining(watch) == [1 / 2]


def test_a_new_pseudonym_starts_with_all_devices() -> None:
    watch = LightAudit(np.array([0]))
    see(watch, [Group(2, [1], [0])], [1, 2])
    see(watch, [Group(2, [1, 2], [0])], [1, 2], version=1)
    assert remaining(watch) == [2 / 2]


def test_only_the_chosen_devices_are_followed_and_the_largest_k_counts() -> None:
    watch = LightAudit(np.array([1, 7]))
    see(watch, [Group(5, [1], [0]), Group(3, [2], [1])], [1, 2])
    see(watch, [Group(2, [2], [1])], [1, 2])
    assert remaining(watch) == [1 / 3]


def test_without_releases_there_are_no_figures() -> None:
    watch = LightAudit(np.array([0]))
    see(watch, [], [1, 2])
    assert remaining(watch) == []
