"""Keys of persons, cell by cell and with one pattern each: the twin of `person_keys`."""

import re
from collections import Counter, defaultdict
from collections.abc import Sequence

from anonymizer.domain.person_key import person_key
from anonymizer.files.meanings import Fold
from anonymizer.files.person_keys import SEPARATORS

_SHARE = 0.5


def with_person_keys(
    name: str, ids: Sequence[str | None], markers: Sequence[str]
) -> tuple[list[str | None], list[Fold]]:
    """Return the key of each identifier of ASCII, and what that joined; none if none has a sign."""
    stated = [each for each in ids if each is not None]
    if not any(re.search("[^0-9A-Za-z]|^0[xX]", each) for each in stated):
        return list(ids), []
    n_tokens = sum(
        re.search("[0-9]", each) is not None and re.search("[a-z].*[A-Z]", each) is not None
        for each in stated
    )
    are_tokens = n_tokens > _SHARE * len(ids)
    nobody = {"", "?", *markers}
    keys: list[str | None] = []
    for each in ids:
        key = None if each is None else person_key(each if are_tokens else each.lower())
        keys.append(each if each in nobody or key in nobody else key)
    cells_of = defaultdict[str, Counter[str]](Counter)
    for each, key in zip(ids, keys, strict=True):
        if each is not None and key is not None:
            cells_of[key][each] += 1
    several = [cells for cells in cells_of.values() if len(cells) > 1]
    if not several:
        return keys, []
    return keys, [
        Fold(
            column=name,
            how=SEPARATORS,
            n_writings=sum(len(cells) for cells in several),
            n_values=len(several),
            n_cells=sum(cells.total() - max(cells.values()) for cells in several),
        )
    ]
