"""Ids of devices and vehicles: two spellings of one are one."""

import unicodedata
from collections.abc import Iterable

from anonymizer.domain.plain_forms import plain_form

_BLANK = dict.fromkeys(map(ord, "\0\t\n\v\f\r"), " ")
_UNSEEN = dict.fromkeys([*range(0x20), 0x7F])
_PLAIN = str.maketrans(_UNSEEN | _BLANK)
_FORMAT = "Cf"
_SLASH, _FRACTION = "/", "\u2044"
_MOST_ROUNDS = 4
"""A form is seldom changed twice: `&amp;amp;`."""


def plain_id(said: str) -> str:
    """Return an id in plain form; empty if it says nothing.

    Notes
    -----
    In Unicode's form, without blanks at its edges and signs that nobody sees. Case and what stands
    inside stay, but for repeated blanks: ids in base64 differ in nothing else. Of printable ASCII
    only blanks go, at .1 µs an id; other texts become `plain_form`. The form of a form is itself.
    """
    if not said.isascii():
        seen = "".join(each for each in said if unicodedata.category(each) != _FORMAT)
        if not seen.replace("\u00a0", " ").isascii():
            return _form(seen)
        said = seen.replace("\u00a0", " ")
    if not said.isprintable():
        said = said.translate(_PLAIN)
    return " ".join(said.split()) if "  " in said else said.strip(" ")


def id_of(levels: Iterable[str]) -> str:
    """Return the id that levels of a topic are together, in plain form.

    Empty if one of them says nothing: two devices could get the same id.
    """
    plain = [plain_id(level).replace(_SLASH, _FRACTION) for level in levels]
    return _SLASH.join(plain) if all(plain) else ""


def _form(text: str) -> str:
    for _ in range(_MOST_ROUNDS):
        text, before = plain_form(text), text
        if text == before:
            break
    return text
