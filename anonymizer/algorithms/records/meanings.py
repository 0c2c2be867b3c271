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
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Literal, TypeAlias

from anonymizer.algorithms.records.time_columns import TimeReading, read_times
from anonymizer.domain.binary_rounding import without_rounding
from anonymizer.domain.date_forms import with_century
from anonymizer.domain.exact_units import in_base_units, other_unit, usual_units
from anonymizer.domain.plain_forms import (
    bare_form,
    compared_form,
    no_value_among,
    plain_form,
)
from anonymizer.domain.spellings import (
    CURRENCIES,
    ERROR,
    NO_VALUE,
    SAME_UNIT,
    TIMES,
    TRUE,
    TRUTH,
)

Way: TypeAlias = Literal["times", "numbers", "true and false", "letter case", "blanks or Unicode"]
"""In what the writings of one value differ."""
_MOMENT = re.compile(r"\d[-/.:]\d|\d\D{1,14}\d{4}|\d-[QW]\d")
"""What dates and times in normal form, and little else, have within."""
_NONE = "None"
"""No value, unless others say `none`."""
_ERROR = re.compile(ERROR)
_BITS = {"0", "1", "0.0", "1.0"}
_MOSTLY_TRUTH = 2 / 3
"""Share of cells from which a column is one of true and false."""
_HALF = 0.5
_PLAIN = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)", re.ASCII)
_POWER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)[eE][+-]?\d{1,3}", re.ASCII)
_BY_COMMA = re.compile(
    r"[+-]?(\d+|\d{1,3}(\.\d{3})+),(\d{1,2}|\d{4,})|[+-]?(\d{4,}|0),\d+", re.ASCII
)
_THOUSANDS = re.compile(
    r"[+-]?\d{1,3}((,\d{3}){2,}(\.\d+)?|(,\d{3})+\.\d+|([ ']\d{3})+([.,]\d+)?)", re.ASCII
)
_POINTS = re.compile(r"[+-]?\d{1,3}(\.\d{3}){2,}(,\d+)?|[+-]?\d{1,3}(\.\d{3})+,\d+", re.ASCII)
_FRACTION = re.compile(r"(?:([1-9]\d{0,2}) )?(1/[2458]|3/[458]|[24]/5|[57]/8)", re.ASCII)
_NEGATIVE = re.compile(r"\((\d[^()]*)\)|(\d[^-]*)-")
"""As accountants write it."""
_SIGN = r"[%\u2030\u00b0\u20ac\u00a3$\u00a5\u20b9\u20bd\u20a9\u20ba]"
_MONEY = rf"{CURRENCIES}|(?:US|C|A)?(?![%\u2030\u00b0]){_SIGN}"
_OF_MONEY = re.compile(_MONEY, re.IGNORECASE)
_QUANTITY = re.compile(
    rf"(?=.*[^\d.,' +-])(?P<before>(?:{_MONEY})?) ?"
    r"(?P<n>[+-]?\d[\d.,']*|[+-]?\.\d+) ?"
    rf"(?P<times>(?:(?i:{'|'.join(TIMES)})\.?(?= ?(?i:{_MONEY})$|$))?) ?"
    rf"(?P<after>(?:(?:{_SIGN}|[^\W\d_]){{1,14}}(?:/[a-zA-Z]{{1,4}})?)?)"
)
_DAY = re.compile(r"\d{4}-(?:\d\d-\d\d|\d{3})")
_COMPACT_DAY = re.compile(r"(?:1[89]|20|21)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])")
_DAYS_OF_YEAR = 366
_DAY_OF_YEAR = re.compile(r"(\d{4})-(\d{3})")
_MIDNIGHT = re.compile(r"[T ]+00:00(:00([.,]0+)?)?([Zz]|[+-]00:?00)?$")
_SERIAL = re.compile(r"[2-5]\d{4}")
"""Numbers of days of spreadsheets, of 1954 to 2064."""
_FIRST_SERIAL = date(1899, 12, 30).toordinal()
_TOKEN = re.compile(r"(?=\S*\d)\S*[a-z]\S*[A-Z]\S*$", re.ASCII)
"""Codes of which the case matters: short links, identifiers of programs."""


@dataclass(frozen=True, slots=True, repr=False)
class Meanings:
    """What the values of a column mean."""

    spelling: list[str | None]
    """How each value is published and compared, None where it is missing."""
    folded: dict[Way, tuple[int, int, int]] = field(default_factory=dict)
    """By way: how many writings were folded into how many values, and in how many cells."""
    no_value: dict[str, int] = field(default_factory=dict)
    """Words for a missing value, and in how many cells."""


def meanings(
    values: Sequence[str],
    counts: Sequence[int],
    *,
    markers: Sequence[str] = NO_VALUE,
    known: Sequence[str] = (),
) -> Meanings:
    """Return what the distinct values of a column mean.

    Parameters
    ----------
    markers
        Words for a missing value.
    known
        Declared values: the writing that is published of what means the same.
    """
    n, declared = len(values), frozenset(known)
    values = [*values, *declared.difference(values)]
    counts = [*counts, *[0] * (len(values) - n)]
    plain = [plain_form(value) for value in values]
    missing = missing_words(plain, markers)
    there = [i for i, text in enumerate(plain) if text not in missing]
    no_value = Counter[str]()
    for text, count in zip(plain, counts, strict=True):
        if text in missing and text not in {"", "?"}:
            no_value[text] += count
    reading = Reading.of([plain[i] for i in there], [counts[i] for i in there])
    way: dict[Hashable, Way | None] = {}
    groups = defaultdict[Hashable, list[int]](list)
    for i in there:
        each, how = reading.key(plain[i])
        groups[each].append(i)
        way[each] = how
    spelling: list[str | None] = [None] * len(values)
    folded: dict[Way, tuple[int, int, int]] = {}
    for each, members in groups.items():
        best = max(
            members,
            key=lambda i: (
                *(values[i] in declared, plain[i] not in markers),  # of None and none, none
                *(counts[i], values[i].isascii(), values[i]),
            ),
        )
        # Numbers and times of other scripts are published as they are read.
        is_read = way[each] in {"numbers", "times"} and values[best] not in declared
        shown = reading.shown(plain[best]) if is_read else values[best].strip()
        for i in members:
            spelling[i] = shown
        others = [i for i in members if i < n and values[i] != shown]
        if others:
            how = way[each] or _difference([plain[i] for i in members])
            writings, meant, cells = folded.get(how, (0, 0, 0))
            n_writings = sum(i < n for i in members)
            n_cells = sum(counts[i] for i in others)
            folded[how] = (writings + n_writings, meant + 1, cells + n_cells)
    return Meanings(spelling[:n], folded, {word: m for word, m in no_value.items() if m})


def _difference(plain: Sequence[str]) -> Way:
    return "blanks or Unicode" if len(set(plain)) == 1 else "letter case"


def missing_words(plain: Collection[str], markers: Sequence[str]) -> frozenset[str]:
    """Return the texts that say that there is no value, in a column of texts in normal form."""
    errors = (x for x in plain if x[:1] in {"#", "E", "F"} and _ERROR.search(x))
    said = filter(no_value_among(tuple(markers)), plain)
    missing = frozenset(
        ("", "?", *markers, *said, *(x for x in errors if x[0] != "#" or x.isupper()))
    )
    return missing if {"none", "NONE"}.isdisjoint(plain) else missing - {_NONE}


@dataclass(frozen=True, slots=True)
class Reading:
    """How the texts of a column are read: decided from all of them, applied to one at a time."""

    folds_case: bool = True
    """Whether letters in both cases are the same."""
    is_truth: bool = False
    """Whether words for true and false are."""
    numbers: Literal["none", "whole", "all"] = "none"
    """Which texts are read as numbers: none; whole ones without a sign, because others may be
    versions (`1.1` and `1.10`); or all."""
    powers: bool = False
    """Whether powers of ten are read: not where anything else is there, `1E5` may be a code."""
    comma: Literal["", "."] = ""
    """What stands for a single comma before three digits."""
    quantities: bool = False
    """Whether numbers with a unit or a currency are read: `5 mg`, `5mg`."""
    unit: str | None = None
    """The only unit or currency of the column, which is left out: `$5` is `5`."""
    times: TimeReading | None = None
    """How dates and times are read, if most texts are some."""
    usual: Mapping[str, str] = field(default_factory=dict)
    """Units of which the case counts, as `usual_units`."""

    @classmethod
    def of(cls, plain: Sequence[str], counts: Sequence[int]) -> "Reading":
        """Return how a column is read that has each of these texts in normal form so often."""
        found, usual = cls._of(plain, counts), usual_units(plain)
        if not usual:
            return found
        # Where units differ by case alone, a number without one may be of either.
        unit = None if any(other_unit(text, usual) for text in plain) else found.unit
        return replace(found, unit=unit, usual=usual)

    @classmethod
    def _of(cls, plain: Sequence[str], counts: Sequence[int]) -> "Reading":
        n_tokens = sum(_TOKEN.match(text) is not None for text in plain)
        folds_case = n_tokens <= _HALF * len(plain)
        key = [text.casefold() if folds_case else text for text in plain]
        n_truth = sum(n for each, n in zip(key, counts, strict=True) if each in TRUTH)
        if n_truth >= _MOSTLY_TRUTH * sum(counts) and not {*key} <= _BITS:
            return cls(folds_case, is_truth=True, times=_times(plain))
        found = cls(folds_case, *_numbers(plain))
        has_days = any(_DAY.fullmatch(text) for text in plain)
        n_numbers = sum(
            found.number(text) is not None and not (has_days and _COMPACT_DAY.fullmatch(text))
            for text in plain
        )
        units = [q[1] for text in plain if (q := _quantity(text, found.comma)) is not None]
        if found.numbers == "all" and n_numbers + len(units) <= _HALF * len(plain):
            found, n_numbers = cls(folds_case), 0
        if n_numbers + len(units) <= _HALF * len(plain):
            return replace(found, times=_times(plain))
        unit = units[0] if len({*units}) == 1 else None
        times = None if n_numbers > _HALF * len(plain) else _times(plain)
        return replace(found, times=times, quantities=bool(units), unit=unit)

    def key(self, text: str) -> tuple[Hashable, Way | None]:
        """Return what a text in normal form means, equal for the same, and how it was read."""
        means, way = self._key(text)
        if self.usual and (unit := other_unit(text, self.usual)):
            return (means, unit), way
        return means, way

    def _key(self, text: str) -> tuple[Hashable, Way | None]:
        folded = text.casefold() if self.folds_case else text
        if self.is_truth and folded in TRUTH:
            return folded in TRUE, "true and false"
        if (number := self.number(text)) is not None:
            return without_rounding(number), "numbers"
        if (at := self._time(text)) is not None:
            return (at[0],), "times"
        if self.quantities and (found := _quantity(text, self.comma)) is not None:
            return found[0] if found[1] == self.unit else in_base_units(*found), "numbers"
        bare = compared_form(bare_form(folded))
        return (Decimal(bare), "numbers") if bare.isdigit() else (bare, None)

    def shown(self, text: str) -> str:
        """Return how a number or time in normal form is published."""
        at = self._time(text)
        return text if at is None else at[1]

    def _time(self, text: str) -> tuple[Fraction, str] | None:
        """Return the moment of a text, and the text that is one of the kind of the column."""
        if self.times is None:
            return None
        text = _in_full(text)
        for form in _FORMS_OF_TIMES:
            if (at := self.times.number(form(text))) is not None:
                return at, form(text)
        return None

    def means(self, text: str) -> Hashable:
        """Return what a text means, equal for the same."""
        return self.key(plain_form(text))[0]

    def number(self, text: str) -> Decimal | None:
        """Return the number that a text is read as, None if it is none."""
        if self.numbers == "none" or not _looks_like_a_number(text):
            return None
        if self.numbers == "whole":
            return Decimal(text) if text.isdigit() else None
        if (found := _number(text)) is not None:
            return found
        if self.powers and _POWER.fullmatch(text):
            return Decimal(text)
        return _by(self.comma, text)


def _by(comma: str, text: str) -> Decimal | None:
    """Return the number of a text with one comma, of which it is known what it stands for."""
    bare = text.replace(",", comma)
    return Decimal(bare) if "," in text and _PLAIN.fullmatch(bare) else None


def _numbers(
    plain: Sequence[str],
) -> tuple[bool, Literal["whole", "all"], bool, Literal["", "."]]:
    """Return the parts of a `Reading` that are about numbers; the first: no truth."""
    looks = [text for text in plain if _looks_like_a_number(text)]
    if len(looks) <= _HALF * len(plain):
        return False, "whole", False, ""
    left = [text for text in plain if _number(text) is None]
    powers = all(_POWER.fullmatch(text) for text in left)
    grouped, commas = (
        any(_number(text) is not None and form.fullmatch(text) for text in looks)
        for form in (_THOUSANDS, _BY_COMMA)
    )
    comma: Literal["", "."] = "." if commas and not grouped else ""
    return False, "all", powers, comma


def _times(plain: Sequence[str]) -> TimeReading | None:
    """Return how times are read, if most texts look like some, and all of these are of one kind."""
    maybe = [text for text in plain if _MOMENT.search(text)]
    n_serials = sum(_SERIAL.fullmatch(text) is not None for text in plain)
    n_compact = sum(_COMPACT_DAY.fullmatch(text) is not None for text in plain)
    if len(maybe) + n_serials + n_compact <= _HALF * len(plain) or len(maybe) < n_serials:
        return None
    for form in _FORMS_OF_TIMES:
        try:
            found = read_times([form(_in_full(text)) for text in maybe])
        except ValueError:  # the day or the month first: it is told where the column is coded
            return None
        if not isinstance(found, str):
            return found.reading
    return None


def _in_full(text: str) -> str:
    """Return a day as in `2024-03-01`, if it is written `20240301` or `2024-061`."""
    if _COMPACT_DAY.fullmatch(text):
        return f"{text[:4]}-{text[4:6]}-{text[6:]}"
    found = _DAY_OF_YEAR.fullmatch(text)
    if found is None or not 0 < int(found[2]) <= _DAYS_OF_YEAR or not int(found[1]):
        return text
    day = date(int(found[1]), 1, 1).toordinal() + int(found[2]) - 1
    return date.fromordinal(day).isoformat() if day <= date.max.toordinal() else text


def _without_midnight(text: str) -> str:
    """Return the date of a time at midnight, and of a number of a spreadsheet that is one."""
    if _SERIAL.fullmatch(text):
        return date.fromordinal(_FIRST_SERIAL + int(text)).isoformat()
    return _MIDNIGHT.sub("", text)


def _with_midnight(text: str) -> str:
    return text if ":" in text else f"{text} 00:00"


_FORMS_OF_TIMES = (str, _without_midnight, _with_midnight, with_century)
"""Dates stand beside times at midnight: programs add them. Years of two digits are read last."""


def _quantity(text: str, comma: str) -> tuple[Decimal, str] | None:
    """Return the number and the unit of a quantity; `comma` as in `Reading`."""
    found = _QUANTITY.fullmatch(text)
    if found is None:
        return None
    n, before, times, after = found.group("n", "before", "times", "after")
    number = _number(n) if "," not in n or _number(n) is not None else _by(comma, n)
    if number is None:
        return None
    if times and _OF_MONEY.fullmatch(before or after):
        number = number.scaleb(TIMES[times.rstrip(".").casefold()])
    else:
        after = f"{times}{after}"
    unit = f"{before}{after}".casefold()
    return number, SAME_UNIT.get(unit, unit)


def _looks_like_a_number(text: str) -> bool:
    bare = text.strip("()")
    return bool(bare) and (bare[0].isdigit() or bare[-1].isdigit() or bare[-1] == ".")


def _number(text: str) -> Decimal | None:
    if text[-1] not in "kK":
        return _written(text)
    found = _written(text[:-1])  # of thousands
    return None if found is None else 1000 * found


def _written(text: str) -> Decimal | None:
    if _PLAIN.fullmatch(text):
        return Decimal(text)
    if found := _NEGATIVE.fullmatch(text):
        return _number(f"-{found[1] or found[2]}")
    if _BY_COMMA.fullmatch(text) or _POINTS.fullmatch(text):
        return Decimal(text.replace(".", "").replace(",", "."))
    if found := _FRACTION.fullmatch(text):
        above, below = map(int, found[2].split("/"))
        return Decimal(found[1] or 0) + Decimal(above) / below
    if _THOUSANDS.fullmatch(text):
        bare = text.replace(" ", "").replace("'", "")
        return Decimal(bare.replace(",", ".") if bare.count(",") == 1 and " " in text
                       else bare.replace(",", ""))  # fmt: skip
    return None
