"""Errors of this package, divided by what the caller does about them.

AnonymizerError
├── SettingsError    bad configuration: exit 2 before connecting, name the file and key
├── InputError       an input file or source cannot be used: exit 2, name it
├── StoreError       records cannot be stored now: leave them at the broker, open the store again
├── TransportError   broker lost: back off, reconnect, lose nothing that was acknowledged
└── GuaranteeError   an output would break its promise: publish nothing of it

One bad *message* is not an error: it gets an outcome with a reason
(`anonymizer.domain.outcomes`), is counted and dropped. No error message carries a coordinate or
a device's identity.
"""

from traceback import walk_tb


def fault_of(error: BaseException) -> str:
    """Return the class of an error and where in this package it was raised, without its words.

    These may quote what it is about: a device or a place.
    """
    frames = [
        (frame.f_globals.get("__name__", ""), line) for frame, line in walk_tb(error.__traceback__)
    ]
    own = [at for at in frames if at[0].startswith("anonymizer")] or frames
    where = f" in {own[-1][0]}, line {own[-1][1]}" if own else ""
    return f"{type(error).__name__}{where}"


_MOST_CHARS = 2_000
_KEPT_BEHIND = 300


class AnonymizerError(Exception):
    """Base class of everything that this package raises on purpose.

    What it says goes to terminals, logs and answers, and may quote a file or a stranger: it has at
    most some 2,000 characters, and none that moves a cursor.
    """

    def __str__(self) -> str:
        text = super().__str__()
        if len(text) > _MOST_CHARS:
            left_out = len(text) - _MOST_CHARS
            ahead = text[: _MOST_CHARS - _KEPT_BEHIND]
            text = f"{ahead} [{left_out:,} characters] {text[-_KEPT_BEHIND:]}"
        return "".join(c if c.isprintable() or c in "\n\t" else "\ufffd" for c in text)


class SettingsError(AnonymizerError):
    """The configuration cannot be used; the message is one line that names the file and key."""


class InputError(AnonymizerError):
    """An input file or source cannot be used; the message is one line that names it."""


class StoreError(AnonymizerError):
    """The store of records cannot be used at present, for example because the disk is full."""


class TransportError(AnonymizerError):
    """The broker refused, vanished or did not answer in time."""


class GuaranteeError(AnonymizerError):
    """An output would break its promise; no part of it may be published."""
