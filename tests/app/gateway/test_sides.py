"""Services of a gateway end in their order, each in its own way."""

import asyncio

from anonymizer.app.gateway.sides import GatewaySide, Service, Sides
from anonymizer.pipeline.ports import LinkCounts


class Log:
    """What services did, in order."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self._closing = {"link": asyncio.Event(), "other": asyncio.Event()}

    async def loop(self) -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            self.said.append("loop cancelled")

    async def last(self) -> None:
        self.said.append("last words")

    async def link(self, name: str) -> None:
        await self._closing[name].wait()
        self.said.append(f"{name} ended")

    async def close(self, name: str) -> None:
        self.said.append(f"{name} closing")
        self._closing[name].set()
        await asyncio.sleep(0)


async def test_last_words_are_said_while_the_links_are_open_and_these_close_in_order() -> None:
    log = Log()
    sides = Sides(
        [
            GatewaySide(
                services=[
                    Service("loop", log.loop, last=log.last),
                    Service("link", lambda: log.link("link"), close=lambda: log.close("link")),
                    Service("other", lambda: log.link("other"), close=lambda: log.close("other")),
                ]
            )
        ]
    )
    async with asyncio.TaskGroup() as group:
        sides.start(group)
        await asyncio.sleep(0)
        await sides.stop()
    assert log.said.index("last words") < log.said.index("link closing")
    assert log.said.index("link closing") < log.said.index("other closing")
    assert sorted(log.said) == sorted(
        f"{what} {how}"
        for what, how in (
            ("loop", "cancelled"),
            ("last", "words"),
            ("link", "closing"),
            ("link", "ended"),
            ("other", "closing"),
            ("other", "ended"),
        )
    )


async def test_what_waits_for_a_service_that_has_closed_does_not_hold_up_the_end() -> None:
    never = asyncio.Event()

    async def waits() -> None:
        await never.wait()

    async def closed() -> None:
        await asyncio.sleep(0)

    sides = Sides([GatewaySide(services=[Service("waits for another", waits, close=closed)])])
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        sides.start(group)
        await asyncio.sleep(0)
        await sides.stop()


def test_a_gateway_knows_the_links_problems_and_metrics_of_all_sides_in_their_order() -> None:
    told = list[str]()
    sides = Sides(
        [
            GatewaySide(problems=lambda: ["one"], links={"a": LinkCounts()}),
            GatewaySide(),
            GatewaySide(
                problems=lambda: ["two", "three"], connected=lambda: told.append("connected")
            ),
            GatewaySide(notes=lambda: ["a note"], links={"b": LinkCounts()}),
        ]
    )
    sides.connected()
    assert list(sides.problems()) == ["one", "two", "three"]
    assert list(sides.notes()) == ["a note"]
    assert list(sides.links) == ["a", "b"]
    assert told == ["connected"]
