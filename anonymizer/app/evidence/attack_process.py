"""Attacks on a live sample, in a process of low priority, so that no tick is late for them.

The sample goes to the process through a pipe, and only the report comes back: nothing is written to
a disk. The process ends with its parent, and is the first to be killed where memory runs out.
"""

import os
import pickle
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, NamedTuple

from anonymizer.app.audit.findings import AuditReport
from anonymizer.domain.network import RoadNetwork
from anonymizer.pipeline.positions.tick.traffic_sample import SampledTraffic
from anonymizer.settings import Settings

_LENGTH_BYTES = 8
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
    """

    def __init__(self, *, niceness: int = NICE) -> None:
        self._process = subprocess.Popen(  # noqa: S603  this very module
            [sys.executable, "-c", f"from {__name__} import main; main({niceness})"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # an error may quote what it is about
            env=os.environ | _ONE_THREAD,
        )

    def report(self, job: AttackJob) -> AuditReport | None:
        """Return what is found; None if the process ends without a report.

        It takes seconds to minutes: call it in a thread.
        """
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
            text = process.stdout.read()
        finally:
            with suppress(BrokenPipeError):
                process.stdin.close()
            process.stdout.close()
            process.wait()
        # Of a process that was killed there may be a part of it.
        return AuditReport.model_validate_json(text) if process.returncode == 0 else None

    @property
    def exit_code(self) -> int | None:
        """Exit code, negative for a signal; None while it runs."""
        return self._process.poll()

    def kill(self) -> None:
        """End the process, whatever it does."""
        self._process.kill()
        self._process.wait()


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
    """Read a job from standard input, and write the report to standard output."""
    from anonymizer.app.evidence.live_sample import attacked  # noqa: PLC0415  nobody else loads it

    yield_to_others(niceness)
    pipe = sys.stdin.buffer
    job = _read_job(pipe)

    def end_with_parent() -> None:
        pipe.read()
        os._exit(1)

    threading.Thread(target=end_with_parent, name="end of the parent", daemon=True).start()
    sys.stdout.write(attacked(*job).model_dump_json())
    sys.stdout.flush()
    os._exit(0)  # the thread still reads, and would be waited for
