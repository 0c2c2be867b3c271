"""Blows on both engines: what each publishes, beside what one process publishes."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

from anonymizer.settings import load_settings
from benchmarks.flink.engines import Asked, Engine
from tests.cluster.kafka import Kafka
from tests.cluster.processes import wait_until
from tests.cluster.recorded import MORE, OneProcess, Raws, arrivals, config_of

_WARM, _BETWEEN, _AFTER = 20, 4, 12
"""Ticks before the first blow, after each, and at the end."""
_FREEZE_S = 12.0
_LONG_S = 600.0
_GARBAGE = b"\xff poison \x00" * 8


class Verdict(NamedTuple):
    """What came of a trial.

    `missing`, `surplus`: messages that one process publishes and the engine did not, and the
    reverse; `back_s`: seconds from each blow to the next message; `n_revived`: programs that had
    ended by themselves.
    """

    engine: str
    trial: str
    n: int
    missing: int
    surplus: int
    back_s: Sequence[float]
    n_revived: int

    def __str__(self) -> str:
        """Return one line."""
        back = " ".join(f"{each:.1f}" for each in self.back_s)
        equal = "equal" if not self.missing + self.surplus else "NOT EQUAL"
        return (
            f"{self.engine:6} {self.trial:16} {equal}: {self.n} messages, {self.missing} missing,"
            f" {self.surplus} surplus; back after [{back}] s, {self.n_revived}"
            " ended by themselves so far"
        )


class Trial:
    """One engine, what it is fed with, and what one process makes of that."""

    def __init__(self, engine: Engine, kafka: Kafka, config_for: Callable[[int], Path]) -> None:
        self.engine, self.kafka, self.config_for = engine, kafka, config_for
        self.alone = OneProcess(load_settings(config_for(2)))
        self._left = arrivals(400, n_sensors=20)
        self.back_s: list[float] = []

    def feed(self, n_ticks: int, *, besides: Sequence[bytes] = ()) -> None:
        """Feed ticks to the engine and to one process; the latter gets nothing else."""
        for _ in range(n_ticks):
            raws: Raws = next(self._left)
            self.engine.feed(raws.values, at_s=raws.at_s)
            if besides:
                self.engine.feed(besides, at_s=raws.at_s)
            self.alone.take(raws)

    def raise_k(self) -> None:
        """Let both go on with another k, from the same state: nothing is on its way."""
        config = self.config_for(3)
        before, self.alone = self.alone, OneProcess(load_settings(config))
        self.alone.published, self.alone.hours = before.published, before.hours
        for source, old_source in zip(self.alone.sources, before.sources, strict=True):
            source.restore(old_source.snapshot())
        for lane, old_lane in zip(self.alone.lanes, before.lanes, strict=True):
            lane.restore(old_lane.snapshot())
        self.engine.resume(config, 1)

    def has_all(self) -> bool:
        """Return whether there are as many messages as one process publishes."""
        return len(self.engine.published) >= sum(map(len, self.alone.published.values()))

    def verdict(self, name: str, *, within_s: float = 240.0) -> Verdict:
        """Feed some more, wait for the last messages, and compare."""
        self.feed(_AFTER)
        until = time.monotonic() + within_s
        while time.monotonic() < until and not self.has_all():
            self.engine.revive()
            time.sleep(0.2)
        time.sleep(2.5)  # for what may come twice
        missing = surplus = n = 0
        for lane, expected in self.alone.published.items():
            rest = sorted(self.engine.published.messages[lane])
            n += len(rest)
            for each in sorted(expected):
                if each in rest:
                    rest.remove(each)
                else:
                    missing += 1
            surplus += len(rest)
        return Verdict(
            self.engine.name, name, n, missing, surplus, self.back_s, self.engine.revive()
        )

    def strike(self, blow: Callable[[], object], n_blows: int) -> None:
        """Feed, strike, feed and wait for the next message, so many times."""
        for _ in range(n_blows):
            before = len(self.engine.published)
            began = time.monotonic()
            blow()
            self.feed(_BETWEEN)
            wait_until(
                lambda n=before: self.engine.revive() >= 0 and len(self.engine.published) > n,  # type: ignore[misc]
                "a message",
                deadline_s=_LONG_S,
            )
            self.back_s.append(time.monotonic() - began)


def _kafka_dies(trial: Trial) -> None:
    trial.kafka.kill()
    trial.kafka.start()


BLOWS: dict[str, Callable[[Trial], object]] = {
    "none": lambda _: None,
    "worker": lambda trial: trial.engine.kill_worker(),
    "manager": lambda trial: trial.engine.kill_manager(),
    "kafka": _kafka_dies,
    "frozen worker": lambda trial: trial.engine.freeze_worker(_FREEZE_S),
    "poison": lambda trial: trial.feed(1, besides=[_GARBAGE] * 2),
    "a worker more": lambda trial: trial.engine.resume(trial.config_for(2), 2),
    "k from 2 to 3": lambda trial: trial.raise_k(),
}
ONCE = frozenset(["none", "a worker more", "k from 2 to 3"])


@contextmanager
def running(asked: Asked, kafka: Kafka) -> Iterator[Trial]:
    """Start an engine on the settings in which everything is on."""
    prefix = f"b{uuid4().hex[:8]}"
    home = asked.folder / f"{asked.name}-{prefix}"
    home.mkdir()

    def config_for(k: int) -> Path:
        config = config_of(home, kafka=kafka.address, prefix=prefix, port=k, more=MORE)
        text = config.read_text(encoding="utf-8").replace("k_values = [2]", f"k_values = [{k}]")
        config.write_text(text.replace(f"port = {k}", "port = 0"), encoding="utf-8")
        return config

    config = config_for(2)
    engine = asked.engine(config, home)
    try:
        engine.start(1)
        yield Trial(engine, kafka, config_for)
    finally:
        engine.stop()


def blows(asked: Asked, names: Sequence[str], n_blows: int, kafka: Kafka) -> Iterator[Verdict]:
    """Try kinds of blows on an engine, one after the other, and compare after each."""
    with running(asked, kafka) as trial:
        trial.feed(_WARM)
        wait_until(lambda: len(trial.engine.published) > 0, "a message", deadline_s=_LONG_S)
        for name in names:
            trial.back_s.clear()
            if name != "manager" or trial.engine.has_manager:
                n = 1 if name in ONCE else n_blows
                trial.strike(lambda b=BLOWS[name]: b(trial), n)  # type: ignore[misc]
                yield trial.verdict(name)
