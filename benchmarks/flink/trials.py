"""Blows on both engines: what each publishes, beside what one process publishes."""

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

from anonymizer.cluster.positions.raw_batches import Raw, encode_raw
from anonymizer.cluster.topics import Kind
from anonymizer.pipeline.ports import Delivery, Outgoing
from anonymizer.pipeline.positions.tick.inbox import Arrivals
from anonymizer.settings import load_settings
from benchmarks.flink.engines import Asked, Engine
from tests.cluster import fleet
from tests.cluster.kafka import Kafka
from tests.cluster.processes import wait_until
from tests.cluster.recorded import MORE, N_SOURCES, NETWORK, OneProcess, Raws, arrivals, config_of

_WARM, _BETWEEN, _AFTER = 20, 4, 12
"""Ticks before the first blow, after each, and at the end."""
_FREEZE_S = 12.0
_LONG_S = 600.0
_QUIET_S = 2.5
"""For what may come twice."""
_GARBAGE = b"\xff poison \x00" * 8
_RAISED_K, _OTHER_K = 3, "k from 2 to 3"
_ERASED = "erase-me"
_LATER = 330
"""Ticks after which a stage has stored its state anew, however little came."""
_ERASED_S, _TOGETHER = 30.0, 8
_SAYS_S, _SAME_S, _MOST_SAID = 120.0, 10.0, 400
_N_VEHICLES, _N_WINDOWS = 60, 6


class Verdict(NamedTuple):
    """What came of a trial.

    `missing`, `surplus`: messages that one process publishes and the engine did not, and the
    reverse; `back_s`: seconds from each blow to the next message; `n_revived`: programs that had
    ended by themselves; `said`: what an operator was told, and what else there is to say;
    `is_compared`: whether one process is a measure.
    """

    engine: str
    trial: str
    n: int
    missing: int
    surplus: int
    back_s: Sequence[float]
    n_revived: int
    said: str = ""
    is_compared: bool = True

    def __str__(self) -> str:
        """Return one line."""
        back = " ".join(f"{each:.1f}" for each in self.back_s)
        equal = "equal" if not self.missing + self.surplus else "NOT EQUAL"
        equal = equal if self.is_compared else "not compared"
        return (
            f"{self.engine:6} {self.trial:16} {equal}: {self.n} messages, {self.missing} missing,"
            f" {self.surplus} surplus; back after [{back}] s, {self.n_revived}"
            f" ended by themselves so far{'; ' * bool(self.said)}{self.said}"
        )


class Trial:
    """One engine, what it is fed with, and what one process makes of that.

    `to`: which stages bridges send to; `take` gives the same to the process, and `expected` returns
    what it has published so far.
    """

    def __init__(
        self,
        engine: Engine,
        kafka: Kafka,
        take: Callable[[Raws], object],
        left: Iterator[Raws],
        expected: Callable[[], list[Outgoing]],
        *,
        to: Kind,
    ) -> None:
        self.engine, self.kafka, self._take = engine, kafka, take
        self._left, self._expected, self._to = left, expected, to
        self.back_s: list[float] = []
        self.said = ""

    def feed(self, n_ticks: int | None, *, besides: Sequence[bytes] = ()) -> None:
        """Feed ticks to the engine and to one process; the latter gets nothing else. None: all."""
        for n, raws in enumerate(self._left, start=1):
            self.give(raws)
            if besides:
                self.engine.feed(besides, at_s=raws.at_s, to=self._to)
            if n == n_ticks:
                break

    def give(self, raws: Raws) -> None:
        """Feed what bridges send in a tick, or in a part of one."""
        self.engine.feed(raws.values, at_s=raws.at_s, to=self._to)
        self._take(raws)

    def has_all(self) -> bool:
        """Return whether there are as many messages as one process publishes."""
        return len(self.engine.published) >= len(self._expected())

    def rest(self) -> None:
        """Wait until all is published, and committed."""
        wait_until(self.has_all, "all messages", deadline_s=_LONG_S)
        time.sleep(_QUIET_S)

    def verdict(
        self, name: str, *, n_ticks: int | None = _AFTER, within_s: float = 240.0
    ) -> Verdict:
        """Feed some more, wait for the last messages, and compare."""
        self.feed(n_ticks)
        until = time.monotonic() + within_s
        while time.monotonic() < until and not self.has_all():
            self.engine.revive()
            time.sleep(0.2)
        time.sleep(_QUIET_S)
        expected = Counter(self._expected())
        found = Counter(each for _, each in self.engine.published.came)
        return Verdict(
            self.engine.name,
            name,
            found.total(),
            (expected - found).total(),
            (found - expected).total(),
            tuple(self.back_s),
            self.engine.revive(),
            self.said,
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


class OfPositions(Trial):
    """Positions, under settings in which everything is on."""

    def __init__(self, engine: Engine, kafka: Kafka, config_for: Callable[[int], Path]) -> None:
        self._config_for = config_for
        self._one = OneProcess(load_settings(config_for(2)))
        super().__init__(
            engine,
            kafka,
            self._one_takes,
            arrivals(560, n_sensors=20),
            self._published,
            to="source",
        )

    def _one_takes(self, raws: Raws) -> None:
        self._one.take(raws)  # of another process, once Kafka was empty

    def _published(self) -> list[Outgoing]:
        return [each for some in self._one.published.values() for each in some]

    def a_worker_more(self) -> None:
        """Let two workers go on."""
        self.engine.resume(self._config_for(2), 2)

    def raise_k(self) -> None:
        """Go on with another k; say of how many groups that is not true, and who is known again.

        What is published then depends on how old the last snapshot was, so one process is no
        measure: every group must have the new k, and no pseudonym may live on.
        """
        self.rest()
        before, n = self.pseudonyms(0), len(self.engine.published)
        self.engine.resume(self._config_for(_RAISED_K), 1)
        self.feed(_BETWEEN * 5)
        wait_until(lambda: self.pseudonyms(n) != [], "a group", deadline_s=_LONG_S)
        time.sleep(_QUIET_S)
        after = self.pseudonyms(n)
        n_small = sum(len(each) < _RAISED_K for each in after)
        known = frozenset().union(*before) & frozenset().union(*after)
        self.said = (
            f"{len(after)} groups after the change, {n_small} below the new k,"
            f" {len(known)} pseudonyms of before among them"
        )

    def pseudonyms(self, after: int) -> list[frozenset[str]]:
        """Return those of each group that was published, after so many messages."""
        said = [json.loads(each.payload) for _, each in self.engine.published.came[after:]]
        return [
            frozenset(each["pseudonyms"])
            for each in said
            if isinstance(each, dict) and each.get("pseudonyms")
        ]

    def empty_kafka(self) -> None:
        """Let Kafka come back empty when all is published, and do what the operator is to do."""
        self.rest()
        self.kafka.lose_everything()
        began = time.monotonic()
        self.kafka.start()
        said, since = "", began
        while time.monotonic() - began < _SAYS_S:
            before, said = said, self.engine.says()[:_MOST_SAID]
            since = since if said == before else time.monotonic()
            if said and time.monotonic() - since > _SAME_S:  # it does not merely wait for Kafka
                break
            time.sleep(0.2)
        self.said = f"after {since - began:.1f} s it says {said!r}"
        if not self.engine.begin_anew():  # and so does one process
            published = self._one.published
            self._one = OneProcess(load_settings(self._config_for(2)))
            self._one.published = published
        self.feed(_WARM)

    def forget(self) -> None:
        """Let a device report for a while and leave; say where its name still is."""
        for n, raws in enumerate(islice(self._left, _WARM + _LATER)):
            if n < _WARM:
                self.give(self._of_device(raws.at_s))
            self.give(raws)
            if n % _TOGETHER == 0:  # no source runs ahead of another for longer than lanes wait
                wait_until(self.has_all, "messages", deadline_s=_LONG_S)
            if n == _WARM:
                self.rest()
                self.said = f"while it is there {self._kept()}"
        self.rest()
        began = time.monotonic()
        while self._kept() and time.monotonic() - began < _ERASED_S:
            self.feed(1)
            time.sleep(1.0)
        self.said += f"; {time.monotonic() - began:.0f} s after it has left {self._kept()}"

    def _of_device(self, at_s: float) -> Raws:
        """Return a part of the tick before this one ends, with a position of the device."""
        place = {"lat": float(NETWORK.lat[12]), "lon": float(NETWORK.lon[12]), "ts": at_s - 0.9}
        said = [Delivery(f"positions/{_ERASED}", json.dumps(place).encode(), 0)]
        tick = int(at_s) - 2  # the one before is over, and this one is not
        of = [[Arrivals(at_s - 0.8, said)], *[[]] * (N_SOURCES - 1)]
        values = [encode_raw(Raw("bridge", tick, False, each)) for each in of]
        return Raws(at_s - 0.7, values, 1)

    def _kept(self) -> dict[str, int]:
        """Return how many values name the device, by where they are."""
        found = {
            name.partition(".")[2] or name: sum(_ERASED.encode() in each for each in values)
            for name, values in self.engine.places().items()
        }
        return {name: n for name, n in found.items() if n}


def _kafka_dies(trial: OfPositions) -> None:
    trial.kafka.kill()
    trial.kafka.start()


BLOWS: dict[str, Callable[[OfPositions], object]] = {
    "none": lambda _: None,
    "worker": lambda trial: trial.engine.kill_worker(),
    "manager": lambda trial: trial.engine.kill_manager(),
    "kafka": _kafka_dies,
    "frozen worker": lambda trial: trial.engine.freeze_worker(_FREEZE_S),
    "poison": lambda trial: trial.feed(1, besides=[_GARBAGE] * 2),
    "a worker more": lambda trial: trial.a_worker_more(),
    "emptied Kafka": lambda trial: trial.empty_kafka(),
    "a device leaves": lambda trial: trial.forget(),
    _OTHER_K: lambda trial: trial.raise_k(),
}
ONCE = frozenset(["none", "a worker more", "emptied Kafka", "a device leaves", _OTHER_K])


@contextmanager
def running(asked: Asked, kafka: Kafka) -> Iterator[OfPositions]:
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
        yield OfPositions(engine, kafka, config_for)
    finally:
        engine.stop()


def blows(asked: Asked, names: Sequence[str], n_blows: int, kafka: Kafka) -> Iterator[Verdict]:
    """Try kinds of blows on an engine, one after the other, and compare after each."""
    with running(asked, kafka) as trial:
        trial.feed(_WARM)
        wait_until(lambda: len(trial.engine.published) > 0, "a message", deadline_s=_LONG_S)
        for name in names:
            trial.back_s.clear()
            trial.said = ""
            if name != "manager" or trial.engine.has_manager:
                n = 1 if name in ONCE else n_blows
                trial.strike(lambda b=BLOWS[name]: b(trial), n)  # type: ignore[misc]
                yield trial.verdict(name)._replace(is_compared=name != _OTHER_K)


def records(asked: Asked, n_blows: int, kafka: Kafka) -> Iterator[Verdict]:
    """Kill a worker while records come, so many times; compare their classes."""
    prefix = f"b{uuid4().hex[:8]}"
    home = asked.folder / f"{asked.name}-{prefix}"
    home.mkdir()
    config = fleet.config_of(home, kafka=kafka.address, prefix=prefix, port=0)
    settings = load_settings(config)
    raws = fleet.raws_of(fleet.sent(_N_VEHICLES, _N_WINDOWS), settings)
    alone = fleet.OneProcess(settings)
    engine = asked.engine(config, home)
    try:
        engine.start(1)
        left = (Raws(*each, 0) for each in raws)

        def take(given: Raws) -> None:
            alone.take(fleet.Raws(given.at_s, given.values))

        trial = Trial(engine, kafka, take, left, lambda: alone.published, to="stream")
        trial.feed(_WARM)
        wait_until(lambda: len(engine.published) > 0, "a class", deadline_s=_LONG_S)
        trial.strike(engine.kill_worker, n_blows)
        yield trial.verdict("records", n_ticks=None)
    finally:
        engine.stop()
