"""A share of a core for a process, kept by the kernel if it lets us, else by stopping the process.

`python -m tests.app.gateway.quota PID SHARE`, until it is terminated.
"""

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path

_LOOK_S = 0.002
_GROUPS = Path("/sys/fs/cgroup/cpu")
_QUOTA_US = 1000
"""The least that the kernel accepts for each period."""


def cpu_s(pid: int) -> float:
    """Return the CPU time of all threads of a process, in seconds."""
    used = 0
    for thread in Path(f"/proc/{pid}/task").iterdir():
        with suppress(OSError):  # a thread that has just ended
            used += int((thread / "schedstat").read_text().split()[0])
    return used / 1e9


@asynccontextmanager
async def quota(pid: int, share: float) -> AsyncIterator[None]:
    """Let a process use no more than this share of a core."""
    with _control_group(pid, share) as controlled:
        if controlled:
            yield
            return
        keeper = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.app.gateway.quota", str(pid), str(share)
        )
        try:
            yield
        finally:
            keeper.terminate()
            await keeper.wait()
            os.kill(pid, signal.SIGCONT)


@contextmanager
def _control_group(pid: int, share: float) -> Iterator[bool]:
    """Limit the process by the kernel; yield whether that is possible here."""
    group = _GROUPS / f"quota-{pid}"
    try:
        group.mkdir()
    except OSError:
        yield False
        return
    try:
        (group / "cpu.cfs_period_us").write_text(str(int(_QUOTA_US / share)))
        (group / "cpu.cfs_quota_us").write_text(str(_QUOTA_US))
        (group / "cgroup.procs").write_text(str(pid))
        yield True
    finally:
        (_GROUPS / "cgroup.procs").write_text(str(pid))
        group.rmdir()


def _keep(pid: int, share: float) -> None:
    with suppress(PermissionError):  # on a busy machine it would come too late to stop anybody
        os.nice(-15)
    began_s, used_s = time.monotonic(), cpu_s(pid)
    stopped = False
    while True:
        over = cpu_s(pid) - used_s > share * (time.monotonic() - began_s)
        if over != stopped:
            os.kill(pid, signal.SIGSTOP if over else signal.SIGCONT)
            stopped = over
        time.sleep(_LOOK_S)


if __name__ == "__main__":
    _keep(int(sys.argv[1]), float(sys.argv[2]))
