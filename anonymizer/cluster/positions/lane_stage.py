"""The lane of a district as a stage: batches of rows in, a release and reports out."""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import numpy as np

from anonymizer.algorithms.positions.protection import ZonedNetwork
from anonymizer.cluster.packed_state import pack_state, unpack_state
from anonymizer.cluster.positions.district_lane import Closed, DistrictLane, closes_at
from anonymizer.cluster.positions.raw_batches import encode_out, in_parts
from anonymizer.cluster.positions.stage_current import (
    COLLECTING_LANE,
    CURRENT,
    CollectedCurrent,
    LaneCurrent,
    decode_stated,
    encode_stated,
)
from anonymizer.cluster.positions.stage_messages import (
    Report,
    decode_batch,
    encode_report,
    slots_by_source,
)
from anonymizer.cluster.positions.stage_outputs import (
    LAST_OF_SLOW,
    OUTPUTS_LANE,
    STATED,
    LaneOutputs,
)
from anonymizer.cluster.positions.stage_readings import LaneReadings
from anonymizer.cluster.stage import Send, reading
from anonymizer.domain.arrays import starts_of
from anonymizer.outputs.copies import Copies
from anonymizer.outputs.registry import asked_for
from anonymizer.pipeline.devices import Pseudonyms
from anonymizer.pipeline.ports import Outgoing
from anonymizer.pipeline.positions.out.encoding import ReleaseEncoder, contract_of
from anonymizer.pipeline.positions.tick.factory import district_maker, districts_of
from anonymizer.pipeline.positions.tick.meaning import formed_under, places_digest
from anonymizer.settings import Settings


class LaneStage:
    """Runs the lane of one district.

    It sends its messages for MQTT to `out`, and one report to each source.

    One lane publishes the `outputs` of all devices, and in `collected` what holds in all districts;
    `current` is what holds in its own. `places`: see `places_digest`; a state of others is not
    read.
    """

    def __init__(
        self,
        lane: DistrictLane,
        encoder: ReleaseEncoder,
        copies: Copies,
        readings: LaneReadings,
        *,
        outputs: LaneOutputs | None,
        current: LaneCurrent | None,
        collected: CollectedCurrent | None,
        pseudonyms: Pseudonyms,
        n_sources: int,
        interval_s: float,
        places: str,
    ) -> None:
        self.lane = lane
        self._name = f"lane {lane.district.number} of {places}"
        self._encoder, self._readings, self._outputs = encoder, readings, outputs
        self._copies, self._current, self._collected = copies, current, collected
        self._pseudonyms = pseudonyms
        self._n_sources = n_sources
        self._interval_s = interval_s
        self.n_messages = self.n_groups = 0
        """Messages for MQTT and groups in them, so far."""

    @property
    def tick(self) -> int | None:
        """The tick that closed last; None: none yet."""
        return self.lane.last

    @property
    def counters(self) -> dict[str, int]:
        """What has happened so far, by name."""
        lane = self.lane
        return {
            "ticks": lane.n_closed,
            "incomplete_ticks": lane.n_incomplete,
            "late_batches": lane.n_late,
            "groups": self.n_groups,
            "messages": self.n_messages,
            "left_out_readings": int(self._readings.n_left_out.sum()),
        } | ({} if self._outputs is None else self._outputs.counters)

    def take(self, value: bytes, *, at_s: float) -> list[Send]:
        """Take a message of a source or of another lane; return the messages to send in turn."""
        if self._collected is not None and value[:1] == CURRENT:
            with reading():
                stated = decode_stated(value, n_lanes=self._collected.n_lanes)
            return list(self._outgoing(self._collected.take(stated)))
        if self._outputs is not None and value[:1] in {STATED, LAST_OF_SLOW}:
            with reading():
                name, piece = self._outputs.read(value)
            messages, besides = self._outputs.take(name, piece)
            return [*self._outgoing(messages), *besides]
        with reading():
            batch = decode_batch(value)
        self.lane.take(batch, at_s=at_s)
        sends: list[Send] = []
        while (closed := self.lane.close()) is not None:
            sends += self._sends(closed)
        return sends

    def _sends(self, closed: Closed) -> Iterator[Send]:
        groups = self._groups(closed)
        yield from self._outgoing([*groups, *self._copies.of(groups)])
        if self._current is not None:
            for stated in self._current.see(groups, now=closed.at_s):
                yield Send("lane", COLLECTING_LANE, encode_stated(stated))
        for to, report in enumerate(self._reports(closed)):
            yield Send("source", to, encode_report(report))

    def _outgoing(self, messages: Sequence[Outgoing]) -> Iterator[Send]:
        self.n_messages += len(messages)
        for part in in_parts(messages):
            yield Send("out", self.lane.district.number, encode_out(part))

    def _groups(self, closed: Closed) -> Sequence[Outgoing]:
        """Return the messages about the groups of a tick."""
        result = closed.result
        operator, keys = self.lane.district.operator, result.key.tolist()
        for batch in closed.batches:
            self._readings.take(batch.readings)
        since = closes_at(closed.tick, self._interval_s) - operator.pace.longest_ttl_s
        messages, _ = self._encoder.encode(
            result.release,
            time=closed.at_s,
            pseudonyms=lambda slots, versions: self._pseudonyms.of(slots, keys, versions),
            values=self._readings.summarize(result.release, result.key, since=since),
            until=operator.until(result.release, now=closed.at_s),
        )
        self.n_groups += result.release.n_groups
        return messages

    def _reports(self, closed: Closed) -> Iterator[Report]:
        result, n = closed.result, self._n_sources
        rows = starts_of(np.array([len(batch.rows.key) for batch in closed.batches], np.int64))
        outcomes = [result.outcome[a:b] for a, b in pairwise(rows.tolist())]
        devices = zip(
            *(slots_by_source(each, n) for each in (result.handle, result.ended)), strict=True
        )
        for source, (released, ended) in enumerate(devices):
            mine = [i for i, batch in enumerate(closed.batches) if batch.source == source]
            yield Report(
                self.lane.district.number,
                closed.tick,
                [closed.batches[i].tick for i in mine],
                [outcomes[i] for i in mine],
                released,
                ended,
            )

    def snapshot(self) -> bytes:
        """Return the whole state. It holds where devices are: store it like raw positions."""
        counts = [self.n_messages, self.n_groups]
        state = {
            "lane": self.lane.state(),
            "readings": self._readings.state(),
            "outputs": None if self._outputs is None else self._outputs.state(),
            "counts": counts,
            "current": None if self._current is None else self._current.state(),
            "collected": None if self._collected is None else self._collected.state(),
        }
        return pack_state(self._name, state)

    def restore(self, snapshot: bytes) -> None:
        """Go on from a snapshot of the same lane."""
        state = unpack_state(self._name, snapshot)
        self.lane.restore(state["lane"])
        self._readings.restore(state["readings"])
        if self._outputs is not None and state["outputs"] is not None:
            self._outputs.restore(state["outputs"])
        self.n_messages, self.n_groups = state["counts"]
        if self._current is not None and state["current"] is not None:
            self._current.restore(state["current"])
        if self._collected is not None and state["collected"] is not None:
            self._collected.restore(state["collected"])


def lane_stages(
    settings: Settings, zoned: ZonedNetwork, *, secret: bytes
) -> Callable[[int], LaneStage]:
    """Return a function that makes the lane of a district; all share what never changes."""
    network = zoned.network
    districts = districts_of(settings, network)
    make_district = district_maker(settings, network, districts)
    places = places_digest(network, districts)
    encoder = ReleaseEncoder(
        network,
        topic=settings.output.topic,
        form=settings.output.form,
        contract=contract_of(settings, network),
        time_step_s=settings.output.time_step_s,
    )

    under = formed_under(settings)
    copies = Copies(settings, network)
    has_current = settings.current.every_s > 0

    def make_collected() -> CollectedCurrent:
        return CollectedCurrent(settings, network)

    def make_outputs() -> LaneOutputs:
        outputs = [each(settings, network) for each in asked_for(settings)]
        return LaneOutputs(outputs, n_sources=settings.cluster.n_parts, secret=secret)

    def make(number: int) -> LaneStage:
        lane = DistrictLane(
            make_district(number),
            n_sources=settings.cluster.n_parts,
            interval_s=settings.tick.interval_s,
            wait_s=settings.cluster.wait_s,
            latency_s=settings.trips.latency_s,
        )
        return LaneStage(
            lane,
            encoder,
            copies,
            LaneReadings(settings.readings),
            outputs=make_outputs() if number == OUTPUTS_LANE else None,
            current=LaneCurrent(settings, number) if has_current else None,
            collected=make_collected() if has_current and number == COLLECTING_LANE else None,
            pseudonyms=Pseudonyms(secret, under),
            n_sources=settings.cluster.n_parts,
            interval_s=settings.tick.interval_s,
            places=places,
        )

    return make
