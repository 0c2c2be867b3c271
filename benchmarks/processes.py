"""CPU time of the processes of a run and of their threads, from /proc."""

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

_UTIME, _STIME, _PARENT = 11, 12, 1  # fields of /proc/PID/stat behind the name; see proc(5)


def cpu_s_of_child(program: str) -> float:
    """Return the CPU seconds of the child processes whose command names a program.

    NaN if the system has no /proc; no other figure needs it.
    """
    ours = [
        _cpu_s(fields)
        for folder in Path("/proc").glob("[0-9]*")
        if (fields := _fields(folder)) and int(fields[_PARENT]) == os.getpid()
        if program in _command(folder)
    ]
    return sum(ours) if ours else float("nan")


def compiling_s_of_child(program: str) -> float:
    """Return the CPU seconds in which Java's compiler worked in such processes, see there."""
    return sum(
        compiling_s_of(int(folder.name))
        for folder in Path("/proc").glob("[0-9]*")
        if (fields := _fields(folder)) and int(fields[_PARENT]) == os.getpid()
        if program in _command(folder)
    )


def compiling_s_of(pid: int) -> float:
    """Return the CPU seconds in which Java's compiler worked in a process.

    It is busy for minutes, while the code of a program that runs for days is compiled once.
    """
    return sum(
        _cpu_s(fields)
        for thread in Path("/proc", str(pid)).glob("task/[0-9]*")
        if "CompilerThre" in _name(thread) and (fields := _fields(thread))
    )


def cpu_s_of(pid: int) -> float:
    """Return the CPU seconds of a process, of all its threads; NaN as in `cpu_s_of_child`."""
    fields = _fields(Path("/proc", str(pid)))
    return _cpu_s(fields) if fields else float("nan")


def cpu_s_of_main_thread(pid: int) -> float:
    """Return the CPU seconds of the first thread of a process, which runs its event loop."""
    fields = _fields(Path("/proc", str(pid), "task", str(pid)))
    return _cpu_s(fields) if fields else float("nan")


def memory_bytes_of(pid: int) -> int:
    """Return the resident memory of a process; 0 if it has ended."""
    with suppress(OSError):
        pages = Path("/proc", str(pid), "statm").read_text(encoding="utf-8").split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")
    return 0


def machine_cpu_s() -> float:
    """Return the CPU seconds that all programs on the machine have used."""
    with suppress(OSError):
        first = Path("/proc/stat").read_text(encoding="utf-8").partition("\n")[0].split()
        user, nice, system, _idle, _iowait, irq, softirq = map(int, first[1:8])
        return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")
    return float("nan")


def _cpu_s(fields: Sequence[str]) -> float:
    return (int(fields[_UTIME]) + int(fields[_STIME])) / os.sysconf("SC_CLK_TCK")


def _fields(folder: Path) -> list[str]:
    """Return the fields of a process or thread; empty if it has just ended."""
    with suppress(OSError):
        return (folder / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return []


def _name(thread: Path) -> str:
    with suppress(OSError):
        return (thread / "comm").read_text(encoding="utf-8")
    return ""


def _command(folder: Path) -> str:
    with suppress(OSError):
        return (folder / "cmdline").read_text(encoding="utf-8")
    return ""
