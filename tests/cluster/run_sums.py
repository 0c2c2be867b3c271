"""Runs a worker of `Sums`: address of Kafka, prefix, name of the worker, folder of its state."""

import sys
from pathlib import Path

from anonymizer.cluster.runner import Runner
from anonymizer.cluster.topics import Topic, key_of, stage_of
from tests.cluster.stages import Sums

N_STAGES = 4

if __name__ == "__main__":
    address, prefix, name, folder = sys.argv[1:]
    inputs, outputs = Topic(f"{prefix}.in", N_STAGES), Topic(f"{prefix}.out", N_STAGES)
    Runner(
        {"bootstrap.servers": address},
        group=f"{prefix}.workers",
        name=name,
        state_dir=Path(folder),
        inputs={inputs: lambda key: Sums(stage_of(key)[1])},
        outputs=(outputs,),
        address=lambda send: (outputs.name, key_of("source", send.number, N_STAGES)),
        commit_s=0.2,
    ).run()
