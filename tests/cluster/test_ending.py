"""A process that is told to end, or is stuck, ends in time, whatever keeps it."""

import signal
import subprocess
import sys

import pytest

from tests.cluster.processes import DEADLINE_S

PROGRAM = """
import signal, time
from anonymizer.cluster.ending import ends_in_time
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(number, lambda *_: None)
with ends_in_time(within_s={within_s}):
    print("at work", flush=True)
    time.sleep({work_s})
print("done", flush=True)
raise SystemExit(3)
"""


def ended(*, within_s: float, work_s: float, number: int) -> tuple[int, str]:
    """Return the exit code, and what is said after the signal."""
    program = PROGRAM.format(within_s=within_s, work_s=work_s)
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert process.stdout is not None
    while "at work" not in process.stdout.readline():
        pass
    process.send_signal(number)
    said, _ = process.communicate(timeout=DEADLINE_S)
    return process.returncode, said


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_what_keeps_a_worker_does_not_keep_it_from_its_end(number: int) -> None:
    code, said = ended(within_s=0.1, work_s=1000, number=number)
    assert code == 0
    assert "taken again" in said


@pytest.mark.parametrize(("number", "within_s"), [(signal.SIGTERM, 60.0), (signal.SIGHUP, 0.1)])
def test_who_ends_by_itself_is_left_alone(number: int, within_s: float) -> None:
    code, said = ended(within_s=within_s, work_s=2.0, number=number)
    assert (code, said) == (3, "done\n")


STUCK = """
import threading, time
from anonymizer.cluster.ending import ends_when_stuck
began = time.monotonic()
def why():
    late_s = time.monotonic() - began
    return f"nothing for {{late_s:.0f}} s" if {begins_s} < late_s < {ends_s} else ""
with ends_when_stuck(why, within_s=3.0):
    threading.Event().wait({work_s})
print("done", flush=True)
"""


def code_of_stuck(**seconds: float) -> tuple[int, str]:
    run = subprocess.run(
        [sys.executable, "-c", STUCK.format(**seconds)],
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=DEADLINE_S,
    )
    return run.returncode, run.stdout


def test_who_is_stuck_ends_with_a_sentence_and_an_exit_code_that_has_it_started_again() -> None:
    code, said = code_of_stuck(begins_s=0.0, ends_s=1e9, work_s=1e6)
    assert code == 1
    assert "nothing for" in said
    assert "start it again" in said
    assert "threading.py" in said, "where it is stuck"


def test_who_was_stuck_for_a_moment_goes_on() -> None:
    code, said = code_of_stuck(begins_s=0.0, ends_s=1.5, work_s=5.0)
    assert (code, said) == (0, "done\n")
