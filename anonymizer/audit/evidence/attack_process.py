"""Attacks on a live sample, in a process of low priority, so that no tick is late for them.

The sample goes to the process through a pipe, and only the report comes back: nothing is written to
a disk. The process ends with its parent, and is the first to be killed where memory runs out.

After each attack it sends the report so far, so that whatever ends it costs only what was not
reached. Of an error, the class and the place in the code come back: its words may be data.
"""

import faulthandler
import os
import pickle
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, NamedTuple

from anonymizer.audit.findings import AuditReport
from anonymizer.child_processes import ending
from anonymizer.domain.network import RoadNetwork
from anonymizer.errors import fault_of
from anonymizer.pipeline.positions.tick.traffic_sample import SampledTraffic
from anonymizer.settings import Settings

_LENGTH_BYTES = 8
_FAULT, _CRASH, _FRAME = b"fault: ", b"Fatal Python error: ", b"  File "
_SAID_BYTES = 65_536
NICE = 10
"""Beside a process of usual priority it then gets a tenth of a busy core."""
_ONE_THREAD = dict.fromkeys(("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")


class AttackJob(NamedTuple):
    """What is attacked."""

    traffic: SampledTraffic
    network: RoadNetwork
    settings: Settings


class AttackProcess:
    """One run of all attacks on a sample.

    Parameters
    ----------
    niceness
        Of the process, added to that of this one.
    code
        What it runs; None: the attacks.
    """

    def __init__(self, *, niceness: int = NICE, code: str | None = None) -> None:
        self._process = subprocess.Popen(  # noqa: S603  this very module
            [sys.executable, "-c", code or f"from {__name__} import main; main({niceness})"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=os.environ | _ONE_THREAD,
        )
        self.problem = ""
        """Why the report is not whole; empty if it is."""
        self._is_late = False

    def report(self, job: AttackJob, *, within_s: float) -> AuditReport | None:
        """Return what is found; None if the process ends without any report.

        It takes seconds to minutes: call it in a thread. After `within_s` the process is killed.
        """
        process, said = self._process, bytearray()
        deadline = threading.Timer(within_s, self._give_up)
        listener = threading.Thread(target=_listen, args=(process.stderr, said), daemon=True)
        deadline.start()
        listener.start()
        try:
            text = self._exchange(job)
        finally:
            deadline.cancel()
            process.wait()
            listener.join()
        reports = text.splitlines()
        # Of a process that was killed there may be a part of the last one.
        whole = reports if text.endswith(b"\n") else reports[:-1]
        report = AuditReport.model_validate_json(whole[-1]) if whole else None
        if process.returncode:
            why = f"took longer than {within_s:.0f} s" if self._is_late else _why(bytes(said))
            self.problem = why or ending(process.returncode)
        return report

    def _give_up(self) -> None:
        self._is_late = True
        self._process.kill()

    def _exchange(self, job: AttackJob) -> bytes:
        """Send the job, and return what the process writes until it ends."""
        process = self._process
        assert process.stdin is not None  # noqa: S101  it is a pipe
        assert process.stdout is not None  # noqa: S101  it is a pipe
        buffers: list[pickle.PickleBuffer] = []
        head = pickle.dumps(job, protocol=5, buffer_callback=buffers.append)
        parts = [memoryview(head), *(each.raw() for each in buffers)]
        try:
            with suppress(BrokenPipeError):
                process.stdin.write(_length(len(parts)))
                for part in parts:
                    process.stdin.write(_length(part.nbytes))
                    process.stdin.write(part)
                process.stdin.flush()
            # The pipe stays open: its end would tell the process that its parent has ended.
            return process.stdout.read()
        finally:
            with suppress(BrokenPipeError):
                process.stdin.close()
            process.stdout.close()

    def kill(self) -> None:
        """End the process, whatever it does."""
        self._process.kill()
        self._process.wait()


def _listen(pipe: BinaryIO, said: bytearray) -> None:
    """Keep the beginning of what the process says of its end."""
    with pipe:
        for line in pipe:
            if len(said) < _SAID_BYTES:
                said += line


def _why(said: bytes) -> str:
    """Return what a process said of its end: a fault, or a crash and the function it was in."""
    lines = said.splitlines()
    for line in lines:
        if line.startswith(_FAULT):
            return line.removeprefix(_FAULT).decode(errors="replace")
    crashes = [line for line in lines if line.startswith(_CRASH)]
    frames = [line for line in lines if line.startswith(_FRAME) and b"anonymizer" in line]
    if not crashes:
        return ""
    where = b" in " + frames[0].rpartition(b"anonymizer/")[2].replace(b'"', b"") if frames else b""
    return (crashes[0].removeprefix(_CRASH) + where).decode(errors="replace")


def _length(n: int) -> bytes:
    return n.to_bytes(_LENGTH_BYTES, "little")


def _read_job(pipe: BinaryIO) -> AttackJob:
    def length() -> int:
        return int.from_bytes(_exactly(pipe, _LENGTH_BYTES), "little")

    head, *buffers = [_exactly(pipe, length()) for _ in range(length())]
    job = pickle.loads(head, buffers=buffers)  # noqa: S301  from the parent alone
    assert isinstance(job, AttackJob)  # noqa: S101  see above
    return job


def _exactly(pipe: BinaryIO, n: int) -> bytearray:
    """Return the next bytes of the pipe, which may be written to: some kernels demand it."""
    read = bytearray(n)
    if pipe.readinto(read) < n:  # type: ignore[attr-defined]
        os._exit(1)  # the parent has ended
    return read


def yield_to_others(niceness: int) -> None:
    """Let other processes go first and be the first to be killed, where that may be asked for."""
    with suppress(OSError):
        os.nice(niceness)
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")


def main(niceness: int) -> None:
    """Read a job from standard input, and write the report to standard output, line by line."""
    faulthandler.enable()
    try:
        _attack(niceness)
    except BaseException as error:  # noqa: BLE001  the outermost edge of a process
        sys.stderr.write(f"{_FAULT.decode()}{fault_of(error)}\n")
        sys.stderr.flush()
        os._exit(1)
    os._exit(0)  # the thread still reads, and would be waited for


def _attack(niceness: int) -> None:
    from anonymizer.audit.evidence.live_sample import attacked  # noqa: PLC0415  nobody else loads it

    yield_to_others(niceness)
    pipe = sys.stdin.buffer
    job = _read_job(pipe)

    def end_with_parent() -> None:
        pipe.read()
        os._exit(1)

    threading.Thread(target=end_with_parent, name="end of the parent", daemon=True).start()

    def say(report: AuditReport) -> None:
        sys.stdout.write(f"{report.model_dump_json()}\n")
        sys.stdout.flush()

    say(attacked(*job, so_far=say))
