from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from anonymizer.domain.arrays import IntArray
from anonymizer.domain.brief_repr import shows


@shows("topic", "tick", "key", "payload")
class _Message(NamedTuple):
    topic: str
    tick: int
    key: IntArray
    payload: bytes
    device: str = "secret"


@shows()
@dataclass(frozen=True, slots=True)
class _Place:
    lat: float


def test_numbers_and_texts_are_shown_and_of_anything_longer_its_length() -> None:
    message = _Message("t", 7, np.array([61, 24]), b"60.17")
    assert repr(message) == "_Message('t', 7, 2, 5)"
    assert repr([message]) == "[_Message('t', 7, 2, 5)]"
    assert f"{message}" == "_Message('t', 7, 2, 5)"


def test_without_fields_the_class_alone_is_shown() -> None:
    assert repr(_Place(60.17)) == "_Place(...)"
    assert _Place(60.17) == _Place(60.17)
