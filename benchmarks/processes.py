"""CPU time of the child processes of a run, from /proc."""

import os
from contextlib import suppress
from pathlib import Path

_UTIME, _STIME, _PARENT = 11, 12, 1  # fields of /proc/PID/stat behind the name; see proc(5)


def cpu_s_of_child(program: str) -> float:
    """Return the CPU seconds of the child processes whose command names a program.

    NaN if the system has no /proc; no other figure needs it.
    """
    ours = [
        sum(map(int, (fields[_UTIME], fields[_STIME]))) / os.sysconf("SC_CLK_TCK")
        for folder in Path("/proc").glob("[0-9]*")
        if (fields := _fields(folder)) and int(fields[_PARENT]) == os.getpid()
        if program in _command(folder)
    ]
    return sum(ours) if ours else float("nan")


def _fields(folder: Path) -> list[str]:
    """Return the fields of a process; empty if it has just ended."""
    with suppress(OSError):
        return (folder / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return []


def _command(folder: Path) -> str:
    with suppress(OSError):
        return (folder / "cmdline").read_text(encoding="utf-8")
    return ""
