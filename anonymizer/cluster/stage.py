"""A stage of a distributed flow: a deterministic state machine over its inputs.

What a stage sends depends on the inputs that it took, in their order, and on nothing else. Its
runner can therefore go back to a snapshot, let the stage take the later inputs again, and drop what
it sends meanwhile.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple, NoReturn, Protocol

from anonymizer.domain.discreet import discreet


class UnreadableError(ValueError):
    """An input that the stage cannot read. It is dropped: the stage has not changed."""


@contextmanager
def reading() -> Iterator[None]:
    """Read an input in this block, before anything of it counts.

    Raises `UnreadableError` whatever fails inside. It repeats nothing of the input.
    """
    try:
        yield
    except Exception:  # noqa: BLE001  bytes of others may make a decoder fail in any way
        refuse()


def refuse() -> NoReturn:
    """Raise an UnreadableError, without the error that led here: it may hold content."""
    raise UnreadableError("these bytes are no input of this stage") from None


@discreet
class Send(NamedTuple):
    """A message of a stage.

    `to`: the name of another kind of stage, or of an output; `number`: which of the stages of that
    kind takes it.
    """

    to: str
    number: int
    value: bytes


class Stage(Protocol):
    """Takes inputs one by one, and sends messages."""

    def take(self, value: bytes, *, at_s: float) -> list[Send]:
        """Take an input; return what is to be sent because of it.

        `at_s`: when it was written, unix seconds; time goes on with the inputs alone.
        UnreadableError if the input cannot be read: then the stage has not changed, not even its
        time.
        """
        ...

    def snapshot(self) -> bytes:
        """Return the whole state. It holds raw data: store it like the inputs."""
        ...

    def restore(self, snapshot: bytes) -> None:
        """Go on from a snapshot of the same stage, in place of the present state."""
        ...
