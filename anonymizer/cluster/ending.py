"""Ends a worker in time after a signal, or when it is stuck, whatever it is waiting for."""

import faulthandler
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import structlog

END_S = 20.0
"""Time for an orderly end. Kafka's client may wait for minutes, and no signal wakes it."""
STUCK_S = 60.0
"""Time for which a process is stuck, and says so, before it is ended."""
_LOOK_S = 1.0
_STDERR = 2


@contextmanager
def ends_in_time(*, within_s: float = END_S) -> Iterator[None]:
    """End this process with exit code 0 if a signal tells it to, and the block takes too long.

    To be used in the main thread. What a stage has taken and not committed is taken again, as after
    a kill.
    """
    told, write = os.pipe()
    os.set_blocking(write, False)
    # The interpreter writes here at once, also while a library keeps the main thread.
    before = signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    done = threading.Event()

    def watch() -> None:
        while (said := os.read(told, 1)) and said[0] not in {signal.SIGTERM, signal.SIGINT}:
            pass
        os.close(told)
        if said and not done.wait(within_s):
            structlog.get_logger().warning("ended while it waited for Kafka; it is taken again")
            sys.stdout.flush()
            os._exit(0)

    threading.Thread(target=watch, name="ending", daemon=True).start()
    try:
        yield
    finally:
        done.set()
        signal.set_wakeup_fd(before)
        os.close(write)


@contextmanager
def ends_when_stuck(why: Callable[[], str], *, within_s: float) -> Iterator[None]:
    """End this process with exit code 1 if it is stuck for a time while the block runs.

    Kafka's client has waits without a limit, which nothing but a new process ends. `why` returns
    since when nothing goes on, or "". A process that stood still as a whole, and goes on, is
    stuck by its clock for a moment: so what counts is how often it was found so.
    """
    done = threading.Event()

    def watch() -> None:
        stuck_s = 0.0
        while not done.wait(_LOOK_S):
            stuck_s = stuck_s + _LOOK_S if why() else 0.0
            if stuck_s >= within_s:
                structlog.get_logger().error(
                    "ended, because it is stuck: start it again, as a supervisor does; what it had"
                    " taken is taken again",
                    reason=why(),
                )
                sys.stdout.flush()
                faulthandler.dump_traceback(_STDERR)  # functions, and nothing of their data
                os._exit(1)

    threading.Thread(target=watch, name="watching", daemon=True).start()
    try:
        yield
    finally:
        done.set()
