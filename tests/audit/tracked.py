"""Audits that track little or not at all: tracking takes three quarters of their time."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import pytest

from anonymizer.audit.attack import Subject
from anonymizer.audit.attacks import tracking
from anonymizer.audit.registry import ATTACKS
from anonymizer.audit.stream_audit import promised_by


@contextmanager
def untracked() -> Iterator[None]:
    """Leave tracking out of audits of which nothing is asked that it finds; no mode promises it."""
    every = ATTACKS[Subject.POSITIONS]
    others = [attack for attack in every if ".tracking:" not in attack]
    assert len(others) == len(every) - 1
    assert "tracking" not in promised_by("session")
    with pytest.MonkeyPatch.context() as without:
        without.setitem(ATTACKS, Subject.POSITIONS, others)
        yield


@contextmanager
def tracked_once() -> Iterator[None]:
    """Let audits of which only the words count begin to track at one moment, and not at several."""
    once = partial(tracking.beliefs, n_starts=1)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(tracking, "beliefs", once)
        yield
