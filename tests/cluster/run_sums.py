"""Runs a worker of `Sums`: address of Kafka, prefix, name of the worker, folder of its state.

A fifth argument is the longest transaction in seconds, and how long a stuck worker lives; a stage
works for three times as long on an input that begins with `LONG`. The first worker of a folder that
meets an input that begins with `ENDLESS` waits for ever.
"""

import sys
import time
from pathlib import Path
from threading import Event

from anonymizer.cluster import transactions
from anonymizer.cluster.ending import STUCK_S
from anonymizer.cluster.runner import Addressed, Runner, Stages
from anonymizer.cluster.stage import Send
from anonymizer.cluster.topics import Topic, key_of, stage_of
from tests.cluster.stages import Sums

N_STAGES = 4
LONG, ENDLESS = b"\xff", b"\xfe"


class Slow(Sums):
    """It needs its time for some inputs."""

    def take(self, value: bytes, *, at_s: float) -> list[Send]:
        if value.startswith(LONG):
            time.sleep(3 * transactions.TRANSACTION_S)
        if value.startswith(ENDLESS) and not MET.exists():
            MET.touch()
            Event().wait()
        return super().take(value, at_s=at_s)


if __name__ == "__main__":
    address, prefix, name, folder, *longest = sys.argv[1:]
    MET = Path(folder) / "met"
    if longest:
        transactions.TRANSACTION_S = int(longest[0])
    inputs, outputs = Topic(f"{prefix}.in", N_STAGES), Topic(f"{prefix}.out", N_STAGES)
    dropped = Topic(f"{prefix}.dropped", 1)
    keys = [key_of("source", number, N_STAGES) for number in range(N_STAGES)]
    Runner(
        {"bootstrap.servers": address},
        group=f"{prefix}.workers",
        name=name,
        state_dir=Path(folder),
        inputs={
            inputs: Stages(
                lambda key: Slow(stage_of(key)[1]), keys, takes_long=lambda v: v.startswith(LONG)
            )
        },
        address=lambda send: [
            Addressed(
                dropped.name if send.to == "dropped" else outputs.name,
                key_of("source", send.number, N_STAGES),
                send.value,
            )
        ],
        commit_s=0.2,
        longest_take_s=3 * transactions.TRANSACTION_S,
        stuck_s=float(longest[0]) if longest else STUCK_S,
    ).run()
