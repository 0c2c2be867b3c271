"""The terminal: what is printed of a file must not steer it."""

from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def printable(text: str) -> str:
    """Return a text without the codes that a terminal would obey; lines stay."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() or each == "\n" else _REPLACEMENT for each in text)


class Terminal(Console):
    """A console on which names of columns, values and paths cannot move the cursor or change it."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Yield the segments of what is printed, with printable text."""
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else printable(text), style, control)
