"""Programs that are forked: their end is seen as of those that are started anew."""

import asyncio

from tests.end_to_end import ANONYMIZER, running


async def test_several_may_wait_for_the_end_of_a_program() -> None:
    async with running(ANONYMIZER, "no-such-command") as program:
        codes = await asyncio.gather(program.ended(), program.ended())
        assert list(codes) == [2, 2]
    assert any("no-such-command" in line for line in program.lines)
