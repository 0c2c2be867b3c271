"""What an output promises, in words."""

from typing import Literal, NamedTuple, TypeAlias

Kind: TypeAlias = Literal["positions", "counts", "records"]


class Promised(NamedTuple):
    """What is published, and what is promised of it.

    Attributes
    ----------
    name, where
        What is published, and the topic.
    promise, not_promised
        In words, with the figures of the settings.
    kind, stream
        Kind of audit that attacks it, and the stream for records; None: no audit of its own.
    """

    name: str
    where: str
    promise: str
    not_promised: str
    kind: Kind | None = None
    stream: str | None = None
