"""Faults of trackers are made in the shares that are asked for, and repeatably."""

import json

import numpy as np
import pytest

from anonymizer.pipeline.ports import Outgoing
from simulator.encoding import positions_to
from simulator.faults import Faults
from simulator.reports import Reports

N = 2000


def made(faults: Faults, *, parts: int = 1) -> list[Outgoing]:
    """Return the messages of reports of one place, encoded in some parts."""
    encode = faults.in_messages(positions_to("positions/{device}", ["a"]), seed=1)
    reports = Reports(np.zeros(N, np.int64), np.zeros(N), np.full(N, 60.0), np.full(N, 25.0))
    return [
        message
        for rows in np.array_split(np.arange(N), parts)
        for message in encode(reports.only(rows), np.full(len(rows), 1.8e9))
    ]


def test_each_fault_has_its_share_of_the_reports() -> None:
    said = [json.loads(m.payload) for m in made(Faults(jumps=0.1, vague=0.2, undated=0.3))]
    shares = [
        np.mean([each["lat"] < 59.8 for each in said]),
        np.mean([each.get("accuracy_m", 0) > 10_000 for each in said]),
        np.mean(["ts" not in each for each in said]),
    ]
    assert shares == pytest.approx([0.1, 0.2, 0.3], abs=0.04)


def test_faults_depend_on_the_seed_and_not_on_what_is_encoded_together() -> None:
    faults = Faults(jumps=0.1, undated=0.1)
    assert made(faults) == made(faults, parts=7)
    assert made(Faults()) == made(Faults(), parts=3)


def test_the_text_of_an_option_names_the_faults() -> None:
    assert Faults.of("jumps=0.01,undated=1") == Faults(jumps=0.01, undated=1.0)


@pytest.mark.parametrize("text", ["jump=0.1", "jumps", "vague=2", "vague=x", "undated=nan"])
def test_what_is_no_share_of_a_fault_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"must be|could not convert"):
        Faults.of(text)
