"""Outputs over several sources: each states what it has seen of a window, and one lane publishes.

What is stated moves as pieces that Kafka takes. The lane publishes a window when every source has
stated it, and leaves out one that a source cannot state. A source that stands still holds up some
windows; then they are left out. Nothing here knows any output by name.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from anonymizer.algorithms.positions.device_keys import Keys
from anonymizer.cluster.held_files import file_parts
from anonymizer.cluster.packed_state import pack, unpack
from anonymizer.cluster.positions.source_windows import SourceWindows, WindowPiece
from anonymizer.cluster.stage import Send
from anonymizer.domain.arrays import Int32Array
from anonymizer.outputs.output import PUBLISHED, HeldFile, Output, SeenTick
from anonymizer.pipeline.ports import PART_BYTES, Outgoing
from anonymizer.pipeline.positions.tick.device_zones import DeviceZones
from anonymizer.pipeline.positions.tick.intake import LocatedPositions

STATED, LAST_OF_SLOW = b"W", b"L"
"""First byte of a piece of a window, and of the last one of an output that is slow to publish."""
OUTPUTS_LANE = 0
"""The lane that publishes them."""


def takes_long(value: bytes) -> bool:
    """Return whether a lane may work for seconds on an input: it may publish a slow output."""
    return value[:1] == LAST_OF_SLOW


class SourceOutputs:
    """The watches of a source.

    Parameters
    ----------
    number
        Of the source.
    keys, kept_s, n_sources
        See `Output.watch`.
    """

    def __init__(
        self, outputs: Sequence[Output], *, number: int, keys: Keys, kept_s: float, n_sources: int
    ) -> None:
        self._number = number
        self._watch_of = {
            each: each.watch(keys=keys, kept_s=kept_s, n_sources=n_sources) for each in outputs
        }

    def see(self, located: LocatedPositions, zones: DeviceZones | None) -> Iterator[Send]:
        """Take in a tick; yield what is to be stated of windows that have ended."""
        seen = SeenTick(located, zones, 0.0)
        for output, watch in self._watch_of.items():
            for window, content in watch.see(seen):
                for value in stated(output, self._number, window, content):
                    yield Send("lane", OUTPUTS_LANE, value)

    def free(self, slots: Int32Array) -> None:
        """Take in that these slots may pass to other devices."""
        for watch in self._watch_of.values():
            watch.free(slots)

    def state(self) -> dict[str, Any]:
        """Return what changes from tick to tick. It holds where devices are."""
        return {each.name: _stamped(each, watch.state()) for each, watch in self._watch_of.items()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state; outputs may have come and gone."""
        for output, watch in self._watch_of.items():
            if output.name in state:
                watch.restore(_of_same_meaning(output, state[output.name]))


def stated(output: Output, source: int, window: int, content: Any) -> Iterator[bytes]:  # noqa: ANN401  of the output's own kind
    """Yield what a source states of a window, in pieces; at least one."""
    pieces = list(output.packed(content))
    for i, piece in enumerate(pieces):
        is_last = i == len(pieces) - 1
        kind = LAST_OF_SLOW if is_last and output.is_slow else STATED
        yield kind + pack([output.name, source, window, i, is_last, piece])


class LaneOutputs:
    """Joins what all sources state, and publishes it.

    `secret`: see `Output.publisher`.
    """

    def __init__(self, outputs: Sequence[Output], *, n_sources: int, secret: bytes) -> None:
        self._n_sources = n_sources
        self._output_of = {each.name: each for each in outputs}
        self._publisher_of = {each.name: each.publisher(secret=secret) for each in outputs}
        self._windows_of: dict[str, SourceWindows[Any]] = {
            each.name: SourceWindows(n_sources, most_waiting=each.most_waiting) for each in outputs
        }
        # Whoever subscribes later needs them, and no stage hears when a broker has lost them.
        self._retained_of = {each.name: each.retained(lambda _: PART_BYTES) for each in outputs}

    @property
    def counters(self) -> dict[str, int]:
        """Windows that were published and suppressed, and what each output counts by reason."""
        found: dict[str, int] = {}
        for name, publisher in self._publisher_of.items():
            n_of, n_published = publisher.n_windows, publisher.n_windows[PUBLISHED]
            n_left_out = sum(n_of.values()) - n_published + self._windows_of[name].n_suppressed
            found |= {f"{name}_windows": n_published, f"suppressed_{name}_windows": n_left_out}
            for reason in self._output_of[name].figure.reasons:
                if reason != PUBLISHED:
                    found[f"{reason}_{name}"] = publisher.n_of.get(reason, 0)
        return found

    def read(self, value: bytes) -> tuple[str, WindowPiece[Any]]:
        """Return the output, and a piece of what a source states of a window of it.

        Raises `ValueError` if it is none of these outputs and sources.
        """
        name, source, window, piece, is_last, packed = unpack(value[1:])
        if (
            name not in self._output_of
            or source not in range(self._n_sources)
            or not all(isinstance(each, int) for each in (window, piece))
        ):
            raise ValueError("this is no piece of a window")
        self._output_of[name].unpacked(packed)  # it can be read when its window is published
        return name, WindowPiece(source, window, piece, bool(is_last), packed)

    def take(self, name: str, piece: WindowPiece[Any]) -> tuple[list[Outgoing], list[Send]]:
        """Take in a piece; return messages for MQTT, and what is to be sent besides.

        Those of a source come in order, and some again.
        """
        messages, sends = list[Outgoing](), list[Send]()
        output, publisher = self._output_of[name], self._publisher_of[name]
        for window, packed in self._windows_of[name].take(piece):
            made = publisher.publish(window, list(map(output.unpacked, packed)))
            outgoing = [each for each in made if isinstance(each, Outgoing)]
            if outgoing:
                messages += [*self._retained_of[name], *outgoing]
            for each in made:
                if isinstance(each, HeldFile):
                    sends += [Send("files", 0, part) for part in file_parts(each)]
        return messages, sends

    def state(self) -> dict[str, Any]:
        """Return what changes with each piece. It may hold where devices were."""
        return {
            name: _stamped(output, [self._windows_of[name].state(), publisher.state()])
            for (name, output), publisher in zip(
                self._output_of.items(), self._publisher_of.values(), strict=True
            )
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state; outputs may have come and gone."""
        for name, output in self._output_of.items():
            if name in state:
                windows, publisher = _of_same_meaning(output, state[name])
                self._windows_of[name].restore(windows)
                self._publisher_of[name].restore(publisher)


def _stamped(output: Output, state: Any) -> list[Any]:  # noqa: ANN401  anything that can be packed
    return [dict(output.meaning(output.settings)), state]


def _of_same_meaning(output: Output, stamped: list[Any]) -> Any:  # noqa: ANN401  see `_stamped`
    """Return a state that was made under settings with the same meaning.

    Raises `ValueError` if it was made under others.
    """
    meaning, state = stamped
    if meaning != output.meaning(output.settings):
        raise ValueError(f"this state is of other {output.name}")
    return state
