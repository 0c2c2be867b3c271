"""Audits that track little or not at all: tracking takes three quarters of their time."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import pytest

from anonymizer.audit import stream_audit, tracking_attack


@contextmanager
def untracked() -> Iterator[None]:
    """Leave tracking out of audits of which nothing is asked that it finds; no mode promises it."""
    others = tuple(attack for attack in stream_audit.ATTACKS if attack[0] != "tracking")
    assert len(others) == len(stream_audit.ATTACKS) - 1
    assert not any("tracking" in promised for promised in stream_audit.PROMISED.values())
    with pytest.MonkeyPatch.context() as without:
        without.setattr(stream_audit, "ATTACKS", others)
        yield


@contextmanager
def tracked_once() -> Iterator[None]:
    """Let audits of which only the words count begin to track at one moment, and not at several."""
    once = partial(tracking_attack.beliefs, n_starts=1)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(tracking_attack, "beliefs", once)
        yield
