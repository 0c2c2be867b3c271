r"""Meanings: which of the values of a column are one value that was written in several ways.

A promise that counts values must count meanings: `HIV`, `hiv` and a Unicode form of either are one
illness, and `\N` is none. Judged by a column as a whole, from its distinct values and how often
each occurs, so that the cost does not depend on the number of rows: about 2 µs a distinct value.

In doubt two writings are one value: then a class may be larger than it had to be. Codes keep their
zeros and their case, because what is published is one of the writings, the most frequent one; and
two of them are only taken for one number if their lengths differ, as no code's do.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Literal, TypeAlias

from anonymizer.domain.spellings import NO_VALUE, TRUE, TRUTH, plain_form

Way: TypeAlias = Literal["times", "numbers", "true and false", "letter case", "blanks or Unicode"]
"""In what the writings of one value differ."""
_NONE = "None"
"""No value, unless others say `none`."""
_MOSTLY_TRUTH = 2 / 3
"""Share of cells from which a column is one of true and false."""
_HALF = 0.5
_PLAIN = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)", re.ASCII)
_POWER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)[eE][+-]?\d{1,3}", re.ASCII)
_BY_COMMA = re.compile(r"[+-]?(\d+|\d{1,3}(\.\d{3})+),(\d{1,2}|\d{4,})|[+-]?\d{4,},\d+", re.ASCII)
_THOUSANDS = re.compile(
    r"[+-]?\d{1,3}((,\d{3}){2,}(\.\d+)?|(,\d{3})+\.\d+|([ ']\d{3})+([.,]\d+)?)", re.ASCII
)
_POINTS = re.compile(r"[+-]?\d{1,3}(\.\d{3}){2,}(,\d+)?|[+-]?\d{1,3}(\.\d{3})+,\d+", re.ASCII)
_TOKEN = re.compile(r"(?=.*\d).*[a-z].*[A-Z]", re.ASCII)
"""Codes of which the case matters: short links, identifiers of programs."""
_TimesOf: TypeAlias = Callable[[Sequence[str]], Mapping[str, Hashable]]


@dataclass(frozen=True, slots=True, repr=False)
class Meanings:
    """What the values of a column mean.

    Attributes
    ----------
    spelling
        How each value is published and compared, None where it is missing.
    folded
        By way: how many writings were folded into how many values, and in how many cells.
    no_value
        Words for a missing value, and in how many cells.
    """

    spelling: list[str | None]
    folded: dict[Way, tuple[int, int, int]] = field(default_factory=dict)
    no_value: dict[str, int] = field(default_factory=dict)


def meanings(
    values: Sequence[str],
    counts: Sequence[int],
    *,
    markers: Sequence[str] = NO_VALUE,
    known: Sequence[str] = (),
    times_of: _TimesOf = lambda _: {},
) -> Meanings:
    """Return what the distinct values of a column mean.

    Parameters
    ----------
    counts
        How often each occurs.
    markers
        Words for a missing value.
    known
        Declared values: the writing that is published of what means the same.
    times_of
        Returns the moment of those texts that are dates or times, if most of them are.
    """
    n, declared = len(values), frozenset(known)
    values = [*values, *declared.difference(values)]
    counts = [*counts, *[0] * (len(values) - n)]
    plain = [plain_form(value) for value in values]
    missing = {"", "?", *markers}
    if not {"none", "NONE"}.isdisjoint(plain):
        missing.discard(_NONE)
    there = [i for i, text in enumerate(plain) if text not in missing]
    no_value = Counter[str]()
    for text, count in zip(plain, counts, strict=True):
        if text in missing and text not in {"", "?"}:
            no_value[text] += count
    key, way = _keys([plain[i] for i in there], [counts[i] for i in there], times_of)
    groups = defaultdict[Hashable, list[int]](list)
    for i, each in zip(there, key, strict=True):
        groups[each].append(i)
    spelling: list[str | None] = [None] * len(values)
    folded: dict[Way, tuple[int, int, int]] = {}
    for each, members in groups.items():
        best = max(
            members,
            key=lambda i: (values[i] in declared, counts[i], values[i].isascii(), values[i]),
        )
        # Numbers and times of other scripts are published as they are read.
        is_read = way(each) in {"numbers", "times"} and values[best] not in declared
        shown = plain[best] if is_read else values[best].strip()
        for i in members:
            spelling[i] = shown
        others = [i for i in members if i < n and values[i] != shown]
        if others:
            how = way(each) or _difference([plain[i] for i in members])
            writings, meant, cells = folded.get(how, (0, 0, 0))
            n_writings = sum(i < n for i in members)
            n_cells = sum(counts[i] for i in others)
            folded[how] = (writings + n_writings, meant + 1, cells + n_cells)
    return Meanings(spelling[:n], folded, {word: m for word, m in no_value.items() if m})


def _difference(plain: Sequence[str]) -> Way:
    return "blanks or Unicode" if len(set(plain)) == 1 else "letter case"


def _keys(
    plain: Sequence[str], counts: Sequence[int], times_of: _TimesOf
) -> tuple[list[Hashable], Callable[[Hashable], Way | None]]:
    """Return what each text means, and of a meaning which way its writings differ in."""
    n_tokens = sum(_TOKEN.match(text) is not None for text in plain)
    folds_case = n_tokens <= _HALF * len(plain)
    key: list[Hashable] = [text.casefold() if folds_case else text for text in plain]
    way_of: dict[Hashable, Way] = {}
    n_truth = sum(n for each, n in zip(key, counts, strict=True) if each in TRUTH)
    is_truth = n_truth >= _MOSTLY_TRUTH * sum(counts) and not {*key} <= {"0", "1"}
    numbers = {} if is_truth else _numbers(plain)
    times = times_of(plain) if len(numbers) <= _HALF * len(plain) else {}
    for i, text in enumerate(plain):
        if is_truth and key[i] in TRUTH:
            key[i] = key[i] in TRUE
            way_of[key[i]] = "true and false"
        elif text in numbers:
            key[i] = numbers[text]
            way_of[key[i]] = "numbers"
        elif text in times:
            key[i] = (times[text],)
            way_of[key[i]] = "times"
    return key, way_of.get


def _numbers(plain: Sequence[str]) -> dict[str, Decimal]:
    """Return those texts that are numbers with their numbers, if any has several writings.

    Of a column in which most are no numbers, whole numbers alone are read: `1.1` and `1.10` may be
    versions there. Powers of ten are read where all are numbers: `1E5` may be a code.
    """
    looks = [text for text in plain if text[-1].isdigit() or text[0].isdigit() or text[-1] == "."]
    of_numbers = len(looks) > _HALF * len(plain)
    if not of_numbers:
        return {text: Decimal(text) for text in looks if text.isdigit()}
    found = {text: number for text in looks if (number := _number(text)) is not None}
    left = [text for text in plain if text not in found]
    if len(left) + len(found) == len(plain) and all(_POWER.fullmatch(x) for x in left):
        found |= {text: Decimal(text) for text in left}
        left = []
    grouped = [text for text in found if _THOUSANDS.fullmatch(text)]
    commas = [text for text in found if _BY_COMMA.fullmatch(text)]
    for text in left:  # 1,234
        if "," in text and bool(grouped) != bool(commas):
            bare = text.replace(",", "" if grouped else ".")
            if _PLAIN.fullmatch(bare):
                found[text] = Decimal(bare)
    return found if len(found) > _HALF * len(plain) else {}


def _number(text: str) -> Decimal | None:
    if _PLAIN.fullmatch(text):
        return Decimal(text)
    if _BY_COMMA.fullmatch(text) or _POINTS.fullmatch(text):
        return Decimal(text.replace(".", "").replace(",", "."))
    if _THOUSANDS.fullmatch(text):
        bare = text.replace(" ", "").replace("'", "")
        return Decimal(bare.replace(",", ".") if bare.count(",") == 1 and " " in text
                       else bare.replace(",", ""))  # fmt: skip
    return None
