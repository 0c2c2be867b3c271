"""What a broker says to the gateway: its limits, and what will be missing because of them."""

import asyncio
from collections.abc import Iterator, Sequence

from anonymizer.app.contract import outgoing_topics
from anonymizer.app.gateway.refused_outputs import why_refused
from anonymizer.errors import TransportError
from anonymizer.pipeline.ports import Delivery, Loss
from anonymizer.pipeline.positions.decode.topics import subscription
from anonymizer.settings import Settings
from anonymizer.transport import MqttLink
from anonymizer.transport.broker_profile import BrokerProfile, Manners, lacking
from anonymizer.transport.refused_topics import refused_topics

_ANSWER_S = 10.0
_PATIENCE_S = 5
"""Between two pings; a sixtieth of it is the first wait before another attempt."""


async def asked_broker(settings: Settings) -> list[str]:
    """Connect and subscribe as the gateway does; return what the broker says.

    It is asked whether it takes what the gateway publishes, as `refused_topics` does, and what it
    says to other gateways.

    A client id of its own leaves the session of a running gateway alone.

    Raises `TransportError` if the broker does not let the gateway in; the message says why.
    """
    profile, refused = await _asked(settings, version=settings.broker.version)
    announces = settings.broker.version == "5"
    if not announces:
        try:
            profile, _ = await _asked(settings, version="5")
            announces = True
        except TransportError:  # it speaks 3.1.1 alone
            pass
    lines = list(_lines(settings, profile, refused, announces=announces))
    topics = [*outgoing_topics(settings), *_of_gateways(settings)]
    said = await refused_topics(settings.broker, topics, client_id=_client_id(settings))
    if said is None:
        return [*lines, "broker: it does not say whether it takes what is published"]
    return lines + [f"missing: {why_refused(said)}"] * bool(said)


def _of_gateways(settings: Settings) -> list[str]:
    """Return the topic on which gateways notice each other, if they do."""
    return [] if settings.in_kafka else [settings.topics.probe]


def _client_id(settings: Settings) -> str:
    return f"{settings.broker.client_id[:16]}-check"


def _lines(
    settings: Settings, profile: BrokerProfile, refused: Sequence[str], *, announces: bool
) -> Iterator[str]:
    said = "; ".join(profile.lines()) if announces else "it announces no limits in MQTT 3.1.1"
    yield f"broker: connected; {said}"
    manners = Manners(retains=profile.retains, qos=min(profile.max_qos, 1))
    kept_s = settings.broker.session_expiry_s
    for each in lacking(profile, manners, session_expiry_s=kept_s):
        yield f"missing: {each}"
    for each in refused:
        yield f"missing: the broker refuses the subscription {each}"


async def _asked(settings: Settings, *, version: str) -> tuple[BrokerProfile, Sequence[str]]:
    """Return what it announces, and the filters that it refuses."""
    states: asyncio.Queue[tuple[bool, str]] = asyncio.Queue()

    def deliver(batch: Sequence[Delivery]) -> None:
        link.acknowledge(each.receipt for each in batch)

    link = MqttLink(
        settings.broker.model_copy(update={"version": version, "keepalive_s": _PATIENCE_S}),
        client_id=_client_id(settings),
        deliver=deliver,
        subscriptions=[
            *((subscription(each.topic), each.qos) for each in settings.inputs),
            *((topic, 0) for topic in _of_gateways(settings)),
        ],
        on_state=lambda connected, reason: states.put_nowait((connected, reason)),
    )
    running = asyncio.create_task(link.run(), name="ask the broker")
    reason = "no answer in time"
    try:
        async with asyncio.timeout(_ANSWER_S):
            while True:
                connected, reason = await states.get()
                if connected:
                    return link.profile, list(link.refused)
                if not link.counts.lost[Loss.CLOSED]:  # else it learns at what the broker ends it
                    break
    except TimeoutError:
        pass
    finally:
        await link.close()
        await running
    raise TransportError(f"broker: not connected: {reason}")
