"""The lane of a district as a stage: batches of rows in, a release and reports out."""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import numpy as np

from anonymizer.algorithms.positions.protection import ZonedNetwork
from anonymizer.app.street_hours import streets_of
from anonymizer.cluster.packed_state import pack_state, unpack_state
from anonymizer.cluster.positions.district_lane import Closed, DistrictLane, closes_at
from anonymizer.cluster.positions.raw_batches import encode_out, in_parts
from anonymizer.cluster.positions.stage_counts import COUNTING_LANE, LaneCounts
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
from anonymizer.cluster.positions.stage_readings import LaneReadings
from anonymizer.cluster.positions.stage_streets import (
    LAST_PASSAGES,
    PASSAGES,
    STREETS_LANE,
    LaneStreets,
    decode_passages,
)
from anonymizer.cluster.positions.stage_trips import TRIPS, TRIPS_LANE, LaneTrips, decode_trips
from anonymizer.cluster.stage import Send, reading
from anonymizer.domain.arrays import starts_of
from anonymizer.pipeline.devices import Pseudonyms
from anonymizer.pipeline.ports import Outgoing
from anonymizer.pipeline.positions.counts.private_counts import noise_of
from anonymizer.pipeline.positions.out.echo import Echoes
from anonymizer.pipeline.positions.out.encoding import ReleaseEncoder, contract_of
from anonymizer.pipeline.positions.tick.factory import district_maker, districts_of
from anonymizer.pipeline.positions.tick.meaning import formed_under, places_digest
from anonymizer.settings import Settings


class LaneStage:
    """Runs the lane of one district.

    It sends its messages for MQTT to `out`, and one report to each source.

    One lane publishes the `counts`, the `trips` and the `streets` of all devices, and in
    `collected` what holds in all districts; `current` is what holds in its own. `places`: see
    `places_digest`; a state of others is not read, nor one of other `n_cells`.
    """

    def __init__(
        self,
        lane: DistrictLane,
        encoder: ReleaseEncoder,
        echoes: Echoes,
        readings: LaneReadings,
        *,
        counts: LaneCounts | None,
        current: LaneCurrent | None,
        collected: CollectedCurrent | None,
        trips: LaneTrips | None,
        streets: LaneStreets | None,
        pseudonyms: Pseudonyms,
        n_sources: int,
        interval_s: float,
        places: str,
        n_cells: int,
    ) -> None:
        self.lane = lane
        self._name = f"lane {lane.district.number} of {places}"
        self._n_cells = n_cells
        self._encoder, self._readings, self._counts = encoder, readings, counts
        self._echoes, self._current, self._collected = echoes, current, collected
        self._trips, self._streets = trips, streets
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
        } | self._counts_so_far()

    def _counts_so_far(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for name, each in (
            ("count_intervals", self._counts),
            ("trip_windows", self._trips),
            ("street_hours", self._streets),
        ):
            if each is not None:
                found |= {name: each.n_published, f"suppressed_{name}": each.n_suppressed}
        if self._trips is not None:
            found["unverified_classes"] = self._trips.n_unverified
        if self._streets is not None:
            found["unverified_hours"] = self._streets.n_unverified
        return found

    def take(self, value: bytes, *, at_s: float) -> list[Send]:
        """Take a message of a source or of another lane; return the messages to send in turn."""
        if self._collected is not None and value[:1] == CURRENT:
            with reading():
                stated = decode_stated(value, n_lanes=self._collected.n_lanes)
            return list(self._outgoing(self._collected.take(stated)))
        if self._trips is not None and value[:1] == TRIPS:
            with reading():
                trips = decode_trips(value, n_sources=self._n_sources)
            return list(self._outgoing(self._trips.take(trips)))
        if self._streets is not None and value[:1] in {PASSAGES, LAST_PASSAGES}:
            with reading():
                passages = decode_passages(value, n_sources=self._n_sources)
            return list(self._streets.take(passages))
        with reading():
            batch = decode_batch(value)
        self.lane.take(batch, at_s=at_s)
        sends: list[Send] = []
        while (closed := self.lane.close()) is not None:
            sends += self._sends(closed)
        return sends

    def _sends(self, closed: Closed) -> Iterator[Send]:
        groups = self._groups(closed)
        yield from self._outgoing([*groups, *self._echoes.of(groups), *self._counted(closed)])
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
        until = self.lane.district.operator.until(result.release, now=closed.at_s)
        keys = result.key.tolist()
        for batch in closed.batches:
            self._readings.take(batch.readings)
        since = (
            closes_at(closed.tick, self._interval_s)
            - self.lane.district.operator.pace.longest_ttl_s
        )
        messages, _ = self._encoder.encode(
            result.release,
            time=closed.at_s,
            pseudonyms=lambda slots, versions: self._pseudonyms.of(slots, keys, versions),
            values=self._readings.summarize(result.release, result.key, since=since),
            until=until,
        )
        self.n_groups += result.release.n_groups
        return messages

    def _counted(self, closed: Closed) -> Sequence[Outgoing]:
        """Return the counts of the intervals that are complete by this tick."""
        if self._counts is None:
            return []
        for batch in closed.batches:
            self._counts.take(batch.source, batch.tally)
        return self._counts.messages()

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
            "tallies": None if self._counts is None else self._counts.state(),
            "counts": counts,
            "current": None if self._current is None else self._current.state(),
            "trips": None if self._trips is None else self._trips.state(),
            "streets": None if self._streets is None else self._streets.state(),
            "collected": None if self._collected is None else self._collected.state(),
        }
        return pack_state(self._name, state, n_cells=self._n_cells)

    def restore(self, snapshot: bytes) -> None:
        """Go on from a snapshot of the same lane."""
        state = unpack_state(self._name, snapshot, n_cells=self._n_cells)
        self.lane.restore(state["lane"])
        self._readings.restore(state["readings"])
        if self._counts is not None and state["tallies"] is not None:
            self._counts.restore(state["tallies"])
        self.n_messages, self.n_groups = state["counts"]
        if self._current is not None and state["current"] is not None:
            self._current.restore(state["current"])
        if self._collected is not None and state["collected"] is not None:
            self._collected.restore(state["collected"])
        if self._trips is not None and state["trips"] is not None:
            self._trips.restore(state["trips"])
        if self._streets is not None and state["streets"] is not None:
            self._streets.restore(state["streets"])


def lane_stages(
    settings: Settings, zoned: ZonedNetwork, *, secret: bytes
) -> Callable[[int], LaneStage]:
    """Return a function that makes the lane of a district; all share what never changes."""
    network = zoned.network
    districts = districts_of(settings, network)
    make_district = district_maker(settings, network, districts)
    places = places_digest(network, districts)
    n_cells = settings.counts.cells if settings.counts.enabled else 0
    encoder = ReleaseEncoder(
        network,
        topic=settings.output.topic,
        form=settings.output.form,
        contract=contract_of(settings, network),
        time_step_s=settings.output.time_step_s,
    )

    under = formed_under(settings)
    echoes = Echoes(settings, network)
    has_current, has_trips = settings.current.every_s > 0, settings.trips_out.every_s > 0

    def make_collected() -> CollectedCurrent:
        return CollectedCurrent(settings, network)

    counts = settings.counts
    noise = noise_of(counts) if counts.enabled and counts.has_noise else None

    def make_counts() -> LaneCounts:
        return LaneCounts(
            counts,
            network,
            n_sources=settings.cluster.n_parts,
            topic=settings.topics.counts,
            k_extra=settings.region.k_extra,
            secret=secret,
            noise=noise,
        )

    def make_streets() -> LaneStreets:
        return LaneStreets(settings, streets_of(network), secret=secret)

    def make_trips() -> LaneTrips:
        return LaneTrips(settings, network, secret=secret)

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
            echoes,
            LaneReadings(settings.readings),
            counts=make_counts() if counts.enabled and number == COUNTING_LANE else None,
            current=LaneCurrent(settings, number) if has_current else None,
            collected=make_collected() if has_current and number == COLLECTING_LANE else None,
            trips=make_trips() if has_trips and number == TRIPS_LANE else None,
            streets=make_streets() if counts.streets_s and number == STREETS_LANE else None,
            pseudonyms=Pseudonyms(secret, under),
            n_sources=settings.cluster.n_parts,
            interval_s=settings.tick.interval_s,
            places=places,
            n_cells=n_cells,
        )

    return make
