"""What an output promises, in words."""

from typing import Literal, NamedTuple, TypeAlias

Kind: TypeAlias = Literal["positions", "counts", "records"]


class Promised(NamedTuple):
    """What is published, and what is promised of it."""

    name: str
    where: str
    """`name`, `where`: what is published, and the topic."""
    promise: str
    not_promised: str
    """`promise`, `not_promised`: in words, with the figures of the settings."""
    kind: Kind | None = None
    stream: str | None = None
    """`kind`, `stream`: kind of audit that attacks it, and the stream for records; None: no audit
    of its own."""
