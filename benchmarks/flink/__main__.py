"""Run both engines on one trace, and print what came: see `--help`."""

import argparse
import signal
import sys
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.cluster import JAVA
from benchmarks.flink.engines import ENGINES, Asked
from benchmarks.flink.speed import speed, speed_of_records
from benchmarks.flink.trials import BLOWS, blows, records
from tests.cluster.kafka import running_kafka


def main() -> None:
    """Run the trials that are asked for."""
    parser = argparse.ArgumentParser("benchmarks.flink", description=__doc__)
    parser.add_argument("flink", type=Path, help="environment with apache-flink and anonymizer")
    parser.add_argument("trials", nargs="*", default=[*BLOWS])
    parser.add_argument(
        "--speed", type=int, nargs="+", metavar="RATE", help="positions a second, or vehicles"
    )
    parser.add_argument("--records", action="store_true", help="records instead of positions")
    parser.add_argument("--blows", type=int, default=3)
    parser.add_argument("--engine", choices=ENGINES, help="only this one")
    parser.add_argument("--folder", type=Path, help="keep what programs write here")
    asked = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # and end what was started
    with TemporaryDirectory() as name:
        folder = (asked.folder or Path(name)).absolute()
        (folder / "kafka").mkdir(parents=True)
        names = [asked.engine] if asked.engine else ENGINES
        engines = [Asked(name, folder, asked.flink.absolute()) for name in names]
        with running_kafka(
            folder / "kafka", java=JAVA, log_retention_check_interval_ms="86400000"
        ) as kafka:
            if asked.speed and asked.records:
                _print(speed_of_records(asked.speed, engines, kafka))
            elif asked.speed:
                _print(speed(asked.speed, engines, kafka))
            elif asked.records:
                for engine in engines:
                    _print(records(engine, asked.blows, kafka))
            else:
                for engine in engines:
                    _print(blows(engine, asked.trials, asked.blows, kafka))


def _print(lines: Iterable[object]) -> None:
    for line in lines:
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
