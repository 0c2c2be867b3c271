"""Ends a worker in time after a signal, whatever it is waiting for."""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import structlog

END_S = 20.0
"""Time for an orderly end. Kafka's client may wait for minutes, and no signal wakes it."""


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
