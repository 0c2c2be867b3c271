"""The format of snapshots and messages has a number, which changes when any of them does."""

import hashlib
import json
from typing import Any

import numpy as np
import pytest

from anonymizer.cluster.packed_state import unpack
from anonymizer.cluster.positions import (
    raw_batches,
    source_windows,
    stage_current,
    stage_messages,
)
from anonymizer.cluster.records import due_windows
from anonymizer.cluster.resident import SNAPSHOT_FORMAT
from anonymizer.outputs import output
from tests.cluster.test_unreadable_inputs import KINDS, makers
from tests.console import ROOT

KNOWN = {
    "source": "3272db872abd6bc7",
    "lane": "10f8607faa6defef",
    "stream": "0409790ecd7e51b6",
    "messages": "4bd7c4edc9190b31",
}
"""Digests of what format 5 looks like, by kind of stage."""


def shape(value: Any) -> Any:  # noqa: ANN401  whatever is in a snapshot
    """Return names and types, without values."""
    if isinstance(value, dict):
        return {str(key): shape(each) for key, each in sorted(value.items(), key=str)}
    if isinstance(value, list | tuple):
        return [shape(each) for each in value]
    return value.dtype.str if isinstance(value, np.ndarray) else type(value).__name__


def messages() -> Any:  # noqa: ANN401  likewise
    """Return the fields of all messages between stages."""
    modules = (
        raw_batches,
        source_windows,
        stage_current,
        stage_messages,
        output,
        due_windows,
    )
    return {
        f"{module.__name__.rpartition('.')[2]}.{name}": list(each._fields)
        for module in modules
        for name, each in sorted(vars(module).items())
        if hasattr(each, "_fields") and each.__module__ == module.__name__
    }


def test_the_page_states_the_format_of_today() -> None:
    page = (ROOT / "docs" / "scaling.md").read_text()
    assert f"**format** (this version: {SNAPSHOT_FORMAT};" in page


@pytest.mark.parametrize("kind", KNOWN)
def test_whoever_changes_a_snapshot_or_a_message_raises_the_number_of_the_format(kind: str) -> None:
    """If this fails: raise SNAPSHOT_FORMAT where it was released, and put the new digest here."""
    assert set(KINDS) < set(KNOWN)
    looks = messages() if kind == "messages" else shape(unpack(makers()[kind](0).snapshot()))
    digest = hashlib.sha256(json.dumps(looks, sort_keys=True).encode()).hexdigest()[:16]
    assert (SNAPSHOT_FORMAT, digest) == (5, KNOWN[kind])
