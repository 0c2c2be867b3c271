"""Whoever waits while a kernel is compiled where it was called: in which block it does."""

import os
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TypeAlias

Waits: TypeAlias = Callable[[], AbstractContextManager[object]]
_waits: Waits = nullcontext


def compiling_here() -> AbstractContextManager[object]:
    """Return a block in which a kernel is compiled that this process waits for."""
    return _waits()


def wait_in(waits: Waits) -> Waits:
    """Let this process wait in such blocks from now on; return what made those before."""
    global _waits
    before, _waits = _waits, waits
    return before


# A block may need a thread, or a lock that another thread held when the child was made.
os.register_at_fork(after_in_child=lambda: wait_in(nullcontext))
