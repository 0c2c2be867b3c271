"""The attack on cohorts by who knows what is left of every vehicle, and who was present."""

from collections.abc import Sequence

import numpy as np

from anonymizer.algorithms.releases.released_classes import ReleasedLabels
from anonymizer.audit.mathematics.known_company import KnownCompany
from anonymizer.audit.mathematics.window_intersection import Read
from anonymizer.domain.records import Attribute, Schema
from tests.algorithms.records.made import categories, numbers

KIND = categories("kind", "abcd", missing=True, halves=True)
MISSING = KIND.missing


def attacked(
    *windows: tuple[Sequence[Sequence[int]], dict[str, int]],
    attribute: Attribute = KIND,
    by_hierarchy: bool = False,
    d: int = 2,
    owned: Sequence[bytes] = (),
) -> Read:
    """Return what is read of windows: the codes that each class allows, and what vehicles said."""
    schema = Schema((attribute,), (), ((0,),))
    attack = KnownCompany(schema, [attribute.name], d=d, by_hierarchy=by_hierarchy, owned=owned)
    for classes, vehicles in windows:
        labels = ReleasedLabels.of([[(code, code) for code in codes] for codes in classes])
        qi = np.array([[code] for code in vehicles.values()], np.int32)
        attack.window([labels], [name.encode() for name in vehicles], qi)
    (read,) = attack.read()
    return read


FIRST = ([[0, 1]], {"u": 0, "v": 1})


def test_a_value_that_only_one_vehicle_can_have_given_is_read() -> None:
    read = attacked(FIRST, ([[0, 1], [1, 2]], {"u": 0, "v": 1, "new": 2}))
    assert (read.n_victims, read.n_read, read.n_short) == (3, 1, 1)


def test_who_owns_the_others_reads_what_they_cannot_have_given() -> None:
    three = ([[0, 1, 2]], {"u": 0, "v": 1, "w": 2})
    for owned, read in (([], (3, 0)), ([b"v"], (2, 0)), ([b"v", b"w"], (1, 1))):
        found = attacked(three, owned=owned)
        assert (found.n_victims, found.n_read) == read


def test_a_value_that_another_newcomer_can_have_given_is_not_read() -> None:
    read = attacked(FIRST, ([[0, 1], [2, 3]], {"u": 0, "v": 1, "new": 2, "other": 3}))
    assert (read.n_victims, read.n_read, read.n_short) == (4, 0, 0)
    read = attacked(FIRST, ([[0, 1], [2, 3]], {"u": 0, "v": 1, "new": 2, "other": 3}), d=3)
    assert (read.n_read, read.n_short) == (0, 4)


def test_who_was_never_published_can_have_any_value() -> None:
    early = ([[0, 1], [1, 2]], {"u": 0, "v": 1, "new": 2, "waits": 3})
    read = attacked(FIRST, early)
    assert (read.n_victims, read.n_read) == (3, 0)
    # A cover that it gets later says what it could not have given.
    later = ([[0, 1], [0, 3]], {"u": 0, "v": 1, "waits": 3})
    read = attacked(FIRST, early, later)
    assert (read.n_victims, read.n_read) == (4, 2)


def test_a_value_that_only_a_member_who_stays_can_have_given_is_read() -> None:
    early = ([[0, 2], [1, 3]], {"u": 1, "other": 3, "w": 2, "x": 0})
    labels = [[0, 1, 2], [0, 2], [1, 3]]
    # Three values of three vehicles. Each can have two of them, but only "w" and "new" can change.
    assert attacked(early, (labels, {"u": 1, "w": 2, "new": 0})).n_read == 1
    assert attacked(early, (labels, {"u": 1, "w": 2, "new": 0, "other": 3})).n_read == 0


def test_a_changed_value_lies_outside_of_the_old_label() -> None:
    stay = {"u": 1, "w": 1}
    first = ([[0, 1]], {**stay, "v": 0})
    read = attacked(first, ([[0, 1], [1, 2]], {**stay, "v": 2}))
    assert (read.n_victims, read.n_read) == (4, 1)
    read = attacked(first, ([[0, 1], [1, 2, 3]], {**stay, "v": 2, "new": 3}))
    assert (read.n_victims, read.n_read) == (5, 0)
    # A label that still holds the old values does not say that anything has changed.
    first = ([[0, 1, 2]], {**stay, "x": 2, "v": 0})
    assert attacked(first, ([[0, 1, 2]], {**stay, "x": 2, "v": 2})).n_short == 0


def test_an_inner_value_of_a_range_is_given_by_nobody() -> None:
    speed = numbers("speed", *range(4))
    later = ([[0, 1], [1, 2, 3]], {"u": 0, "v": 1, "new": 2})
    assert attacked(FIRST, later, attribute=speed).n_read == 0
    assert attacked(FIRST, later).n_read == 1


def test_a_node_gives_a_value_away_if_it_has_no_other_leaf_there() -> None:
    early = ([[0, 1]], {"u": 0, "v": 1})
    root = ([[0, 1], [0, 1, 2, 3]], {"u": 0, "v": 1, "new": 2})
    assert attacked(early, root, by_hierarchy=True).n_read == 0
    assert attacked(early, root).n_read == 1
    half = ([[0, 1], [2, 3]], {"u": 0, "v": 1, "new": 2})
    assert attacked(early, half, by_hierarchy=True).n_read == 1


def test_windows_of_one_vehicle_that_have_one_value_in_common_are_read() -> None:
    read = attacked(FIRST, ([[0, 2], [1, 3]], {"u": 0, "v": 1}))
    assert (read.n_victims, read.n_read, read.n_short) == (2, 2, 2)


def test_a_value_that_changes_begins_anew() -> None:
    read = attacked(FIRST, ([[2, 3]], {"u": 2, "v": 3}), ([[2, 3]], {"u": 2, "v": MISSING}))
    assert (read.n_victims, read.n_read, read.n_short) == (4, 0, 0)


def test_a_label_with_the_missing_marker_may_withhold_a_value() -> None:
    withheld = ([[0, 1, MISSING]], {"u": 0, "t": 1, "v": 2})
    assert attacked(withheld).n_victims == 0
    later = ([[0, 1], [2, 3]], {"u": 0, "t": 1, "v": 2, "w": 3})
    assert attacked(withheld, later).n_victims == 4
    assert attacked(withheld, later).n_read == 0
