"""Outputs that the broker refuses, where it is too busy to say so at first."""

import asyncio
from collections.abc import Mapping, Sequence

import pytest

from anonymizer.app.gateway import refused_outputs
from anonymizer.app.gateway.refused_outputs import RefusedOutputs
from anonymizer.settings import BrokerSettings, Settings
from tests.end_to_end import eventually

TOPIC = "cloaked/positions"


@pytest.mark.parametrize(("n_unanswered", "rarely_s"), [(2, 600.0), (1100, 0.0)])
async def test_a_broker_that_was_too_busy_to_answer_is_asked_again_and_not_ten_minutes_later(
    monkeypatch: pytest.MonkeyPatch, n_unanswered: int, rarely_s: float
) -> None:
    """However often it does not answer: some never do, for weeks."""
    answers: list[Mapping[str, str] | None] = [None] * n_unanswered
    answers.append({TOPIC: "not authorized"})

    async def asked(
        _: BrokerSettings, topics: Sequence[str], *, client_id: str
    ) -> Mapping[str, str] | None:
        assert TOPIC in topics
        assert client_id == "ask"
        return answers.pop(0) if len(answers) > 1 else answers[0]

    monkeypatch.setattr(refused_outputs, "refused_topics", asked)
    monkeypatch.setattr(refused_outputs, "LOOK_S", 0.001)
    monkeypatch.setattr(refused_outputs, "_RARELY_S", rarely_s)
    monkeypatch.setattr(refused_outputs, "_SOON_S", 0.01)
    outputs = RefusedOutputs(
        Settings(), client_id="ask", connected=lambda: True, n_undelivered=lambda: 0
    )
    outputs.renew()
    running = asyncio.create_task(outputs.run())

    async def silent() -> str:
        return outputs.silent

    assert "not authorized" in await eventually(silent, bool)
    running.cancel()
