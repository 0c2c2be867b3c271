"""Ages of pseudonyms, against a plain dictionary."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.domain.arrays import starts_of
from anonymizer.domain.release import Release
from anonymizer.pipeline.positions.tick.flow_stats import PseudonymAges
from tests.pipeline.positions.support import NOW, Rig, delivery


def release_of(borne: dict[int, int]) -> Release:
    """Return a release of one group whose members (slots) bear pseudonyms of these numbers."""
    members = np.array(sorted(borne), np.int32)
    n_groups = min(1, len(borne))
    return Release(
        k=np.full(n_groups, 2, np.int32),
        first_node_of=starts_of(np.ones(n_groups, np.int64)),
        node=np.zeros(n_groups, np.int32),
        first_member_of=starts_of(np.full(n_groups, len(borne), np.int64)),
        member=members,
        version=np.array([borne[slot] for slot in sorted(borne)], np.int64),
    )


@given(st.lists(st.dictionaries(st.integers(0, 5), st.integers(-1, 2), max_size=4), max_size=8))
def test_the_oldest_pseudonym_of_the_last_release_is_told(releases: list[dict[int, int]]) -> None:
    ages = PseudonymAges()
    since: dict[int, tuple[int, float]] = {}
    oldest = 0.0
    for now, borne in enumerate(releases):
        for slot, number in borne.items():
            if slot not in since or since[slot][0] != number:
                since[slot] = (number, float(now))
        if borne:
            oldest = max(now - since[slot][1] for slot in borne)
        ages.see(release_of(borne), now=float(now))
        assert ages.oldest_s == oldest


def test_a_flow_renews_its_pseudonyms_in_time_and_says_so() -> None:
    rig = Rig(session={"epoch_s": 10}, region={"mode": "adka"})
    for age in range(25):
        rig.publish(*(delivery(f"d{i}", 12, NOW + age) for i in range(4)), now=NOW + age)
        assert rig.flow.view.oldest_s < rig.flow.age_limit_s == 10
