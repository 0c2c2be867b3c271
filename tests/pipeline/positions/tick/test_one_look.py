"""What is looked at once for all of a tick is what a look at each one finds."""

import math

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from anonymizer.algorithms.positions.device_keys import slots_as_keys
from anonymizer.algorithms.positions.trust import Claims
from anonymizer.domain.release import Release
from anonymizer.networks import load_network
from anonymizer.pipeline.positions.tick.flow_stats import FlowStats
from anonymizer.pipeline.positions.tick.intake import timeliness
from anonymizer.pipeline.positions.tick.trusted_devices import TrustedDevices

NOW = 1_800_000_000.0
_GRID = load_network("grid:3x3")

_AGE_S = st.sampled_from([math.nan, -math.inf, -30.0, -5.0, -4.9, 0.0, 9.9, 10.0, 10.1, 60.0, 1e9])
_LIMIT_S = st.sampled_from([5.0, 10.0, 60.0])


@given(
    ages=st.lists(st.tuples(_AGE_S, _LIMIT_S, st.booleans()), max_size=6),
    of_each=st.booleans(),
)
def test_a_time_is_plausible_whatever_the_others_of_its_tick_are(
    ages: list[tuple[float, float, bool]], *, of_each: bool
) -> None:
    ts = NOW - np.array([age for age, *_ in ages])
    behind_s = np.array([limit for _, limit, _ in ages])
    zoneless = np.array([bare for *_, bare in ages], np.bool_)
    found = timeliness(ts, behind_s=behind_s if of_each else 10.0, now=NOW, zoneless=zoneless)
    alone = [
        timeliness(
            ts[i : i + 1],
            behind_s=behind_s[i : i + 1] if of_each else 10.0,
            now=NOW,
            zoneless=zoneless[i : i + 1],
        )[0]
        for i in range(len(ages))
    ]
    assert found.tolist() == alone


@given(
    ticks=st.lists(
        st.tuples(
            st.lists(st.integers(0, 3), max_size=4, unique=True),
            st.sampled_from([0.0, 1.0, 4.0]),
            st.lists(st.integers(0, 3), max_size=2, unique=True),
        ),
        max_size=8,
    )
)
@example(ticks=[([], 0.0, []), ([0], 0.0, []), ([], 4.0, [])])
@example(ticks=[([0], 0.0, []), ([1], 2.0, []), ([0], 2.0, []), ([0], 4.0, [1])])
def test_who_claims_nothing_any_more_is_found_and_nobody_else(
    ticks: list[tuple[list[int], float, list[int]]],
) -> None:
    trusted, heard, now = TrustedDevices(slots_as_keys, kept_s=60.0), dict[int, float](), NOW
    for slots, passes_s, forgotten in ticks:
        now += passes_s
        n = len(slots)
        places = (np.full(n, NOW), np.zeros(n), np.zeros(n), np.zeros(n, np.bool_))
        claims = Claims(np.array(slots, np.int32), *places, None, np.arange(n))
        trusted.judge(claims, max_mps=np.full(n, 1e9), now=now)
        heard |= dict.fromkeys(slots, now)
        late = sorted(slot for slot, at_s in heard.items() if at_s < now - 3.0)
        assert trusted.unheard(before=now - 3.0).tolist() == late
        trusted.forget(np.array(forgotten, np.int32))
        for slot in forgotten:
            heard.pop(slot, None)


@given(sizes=st.lists(st.integers(1, 50), min_size=1, max_size=40))
def test_the_quantiles_of_anonymity_sets_are_those_of_numpy(sizes: list[int]) -> None:
    n = len(sizes)
    first = np.cumsum([0, *sizes])
    release = Release(
        k=np.full(n, 1, np.int32),
        first_node_of=np.arange(n + 1),
        node=np.zeros(n, np.int32),
        first_member_of=first,
        member=np.arange(first[-1], dtype=np.int32),
        version=np.zeros(first[-1], np.int64),
    )
    stats = FlowStats()
    stats.measure(release, np.array(sizes), _GRID)
    assert np.allclose(stats.k_reached_last, np.percentile(sizes, (0, 1, 50)), rtol=1e-12)
