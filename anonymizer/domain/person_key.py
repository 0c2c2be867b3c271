"""Keys of persons and vehicles: one for all writings of an identifier, as `B-AB 100` and `BAB100`.

Blanks, signs and brackets are left out, unless they are of a number or an IP address: `1.5`, `-5`
and `1.1.1.11` stay apart from `15`, `5` and `1.1.11.1`, while `1,000` is `1000`. Identifiers that
differ in these alone (`1-23`, `12-3`) are one person: that can only lower k. So are letters that
look alike, umlauts in two letters where the same has them in one, and `identifier_writings`.
"""

import re

from anonymizer.domain.identifier_writings import letters_of, one_writing

SIGNS = r"[ -/:-@\[-`{-~]+"
AROUND = " '\"`=;"
GROUPED = r"^[+-]?[0-9]{1,3}(,[0-9]{3})+(\.[0-9]+)?$"
NUMBER = rf"{GROUPED}|^[+-]?[0-9]*[.,]?[0-9]+$"
DECIMALS = r"^(-?[0-9]*\.[0-9]*[1-9])0+$"
NO_DECIMALS = r"^(-?[0-9]+)\.0+$"
ADDRESS = r"^[0-9]{1,3}(\.[0-9]{1,3}){3}$"
PADDED = r"^0+([0-9]+)$"
MIXED_CASE = r"[a-z].*[A-Z]"


def person_key(text: str) -> str:
    """Return the key of one identifier in bare form, whose case is folded if it matters not."""
    cell = one_writing(text.strip(AROUND))
    if not cell.isascii():
        cell = letters_of(cell)
    if re.search(NUMBER, cell):
        key = cell.replace(",", "" if re.search(GROUPED, cell) else ".").removeprefix("+")
        key = re.sub(NO_DECIMALS, r"\1", re.sub(DECIMALS, r"\1", key))
    else:
        key = cell if re.search(ADDRESS, cell) else re.sub(SIGNS, "", cell)
    return re.sub(PADDED, r"\1", key) or text


def vehicle_key(said: str) -> str:
    """Return the key of the id of a vehicle, in plain form; .8 µs where it has no signs, 4 µs else.

    Case is folded but in texts such as those of short links, `aB3xY`, in which it matters.
    """
    if said.isascii():
        if not re.search(MIXED_CASE, said) or not re.search("[0-9]", said):
            said = said.lower()
        if said.isalnum() and not said.startswith("0"):
            return said
    return person_key(said)
