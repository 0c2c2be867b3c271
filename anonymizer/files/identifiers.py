"""Direct identifiers among published columns, recognized by what the cells hold.

A name tells little of a column (`ref`, `note`, `x`), so its content is looked at: forms of which
each value is somebody's, and anything else that most people have for themselves. What is recognized
need not identify anybody, and what is not may: a reader of the table knows.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import polars as pl

from anonymizer.files.coded_columns import is_missing, texts
from anonymizer.files.free_text import told_of
from anonymizer.files.tables import TextTable

_FORMS: dict[str, str] = {
    "e-mail addresses": r"(?i)[^@\s,;:<>]+@[^@\s,;<>]+\.[^@\s,;.<>]{2,}"
    r"|\S+ ?([(\[]at[)\]]| at ) ?\S+\.[a-z]{2,}$",
    "UUIDs": r"(?i)^\{?[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}\}?$",
    "MAC addresses": r"(?i)^(([0-9a-f]{2}[:-]){5}[0-9a-f]{2}|([0-9a-f]{4}\.){2}[0-9a-f]{4})$",
    "IP addresses": r"(?i)^((25[0-5]|2[0-4]\d|1?\d?\d)(\.(25[0-5]|2[0-4]\d|1?\d?\d)){3}(:\d+)?"
    r"|([0-9a-f]{1,4}:){7}[0-9a-f]{1,4}|[0-9a-f:]*::[0-9a-f:]*)(/\d{1,3})?$",
    "web addresses": r"(?i)^(([a-z][a-z0-9+.-]+://|www\.)\S+|([a-z0-9-]+\.)+[a-z]{2,}/\S+)$",
    "IBANs": r"(?i)^[a-z]{2}\d{2}( ?[a-z0-9]){11,30}$",
    "payment cards": r"^\d{4}([ -]?\d{4}){2}[ -]?\d{1,7}$|^([Xx*\u{2022}]{4}[ -]?){2,3}\d{4}$",
    "national ids": r"(?i)^(\d{3}-\d{2}-\d{4}|\d{17}[\dx]|\d{3}\.\d{3}\.\d{3}-\d{2}"
    r"|[a-ceghj-prtw-z]{2} ?(\d{2} ?){3}[a-d]|[xyz]?\d{7,8}-?[a-z]|756\.\d{4}\.\d{4}\.\d\d"
    r"|[a-z]{6}\d\d[a-z]\d\d[a-z]\d{3}[a-z]"
    r"|[2-9]\d{3} \d{4} \d{4}|[12] ?\d\d ?[01]\d ?\d[\dab] ?\d{3} ?\d{3} ?\d\d|\d{6}[-+ ]\d{4})$",
    "vehicle identification numbers": r"(?i)^[a-hj-npr-z0-9]{17}$",
    "hashes": r"(?i)^(0x)?[0-9a-f]{8,128}$",
    "tokens": r"^[A-Za-z0-9_+/-]{16,}={0,2}$",
    "account names": r"(?i)^(@[\w.]{2,}(@[\w.-]+)?|live:\S+|\S{2,32}#\d{4})$",
    "coordinates": r"(?i)^(point *)?\(?[-+]?\d{1,3}\.\d{3,}\u{b0}?[ns]?[,; ]+"
    r"[-+]?\d{1,3}\.\d{3,}\u{b0}?[eow]?\)?$"
    r"|^[ns]? ?\d{1,3} ?\u{b0} ?\d{1,2} ?['\u{2032}].*[nseow\"\u{2033}]$"
    r"|^[23456789cfghjmpqrvwx]{4,8}\+[23456789cfghjmpqrvwx]{2,3}$"
    r"|^\d{1,2}[c-x][a-z]{2} ?\d{2,5} ?\d{2,5}$|^/{0,3}\p{L}{3,}\.\p{L}{3,}\.\p{L}{3,}$",
    "times to the minute": r"^\d{4}[-/.]\d\d[-/.]\d\d[ T]\d\d:\d\d(:\d\d.*)?$",
}
"""Forms by kind, of which any other value is improbable."""
_NOT_ALONE = {
    *("payment cards", "national ids", "hashes", "tokens", "coordinates", "times to the minute"),
}
"""Kinds whose form other values may have, too: most cells must."""
_PHONE = r"^(tel:)?(\+|00)?\(?\d[\d ()./-]{5,18}\d$"
_PHONE_SIGN = r"^(tel:|\+|0)|[ ()/-]|\.\d+\."
_NO_PHONE = (
    r"^(\d{4}[-/.]\d\d?[-/.]\d\d?([ T].*)?|\d\d?[-/.]\d\d?[-/.]\d{4}([ T].*)?|\d+\.\d+"
    r"|\d{1,3}/\d{1,3}|\d{1,3}((\.\d{3})+(,\d+)?|([ ']\d{3})+([.,]\d+)?))$"
)
_SERIAL = r"^[\p{L}\d]{1,10}([ \u{b7}.-]{0,2}[\p{L}\d]{1,7}){0,4}$"
_NO_SERIAL = (
    r"(?i)^([a-z]{1,2}\d[a-z\d]? ?\d[a-z]{2}|[a-z]\d[a-z] ?\d[a-z]\d|[a-z]{1,2}-?\d{4,5}"
    r"|\d{4}-?[wqhs]\d{1,2}|\d{4} [a-z]{2}|\p{L}+( \p{L}+)* \d{1,3})$"
)
"""Postcodes, weeks and quarters, and names with a number."""
_NAME = (
    r"^(\p{Lu}[\p{L}'\u{2019}.-]*)"
    r"((, | )((v[ao]n|zu|d[aeiou]s?|der?|den|ten|l[ae]|bin|al|el|y|e) )*"
    r"\p{Lu}[\p{L}'\u{2019}.-]*){1,4}$"
)
_KANA = r"[\p{Han}\p{Hiragana}\p{Katakana}]{1,5}"
_LETTERS = r"[\p{Arabic}\p{Hebrew}\p{Devanagari}\p{Bengali}\p{Tamil}\p{Thai}\p{Hangul}]+"
_OTHER_NAME = (
    rf"^([\p{{Han}}\p{{Hangul}}]{{2,4}}|{_KANA}[ \u{{3000}}\u{{30fb}}]{_KANA}"
    rf"|{_LETTERS}( {_LETTERS}){{1,3}})$"
)
"""In scripts without capitals."""
_ADDRESS = (
    r"(?i)^(\d+[a-z]?,? (\p{L}[\p{L}.'-]*,? ?){1,6}.*"
    r"|\p{L}[\p{L}.' -]*,? \d+ ?[a-z]?([/-]\w{1,4})?(, ?.*)?"
    r"|.*\p{Han}.*[\u{8def}\u{8857}\u{5df7}\u{533a}\u{753a}\u{5f04}].*\d+.*)$"
)
_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
_MEASURED = r"^([+-]?\d+([.,]\d+)? ?[^\d\s]{1,12}|\d{1,3}/\d{1,3})$"
_UNIT = r"^[+-]?[\d.,/]+ ?([^\d\s]*)$"
_MOST_UNITS = 5
_PLACE_NAME = r"(?i)^(.*[_ .-])?(lat|lon|lng|latitude|longitude|gps)([_ .-].*)?$"
_FRACTION = r"\.\d{3,}$"
_NUMBERS = "numbers of their own"
_PARTS = r"[^{}\[\]|]+"
_PHONE_DIGITS, _ID_DIGITS = 7, 6
_SOME, _MOST, _NEARLY_ALL = 0.01, 0.5, 0.9
_SHARED = 2
"""People who have a value in common that still tells each of them apart, if it is kept."""
_FEW_HAVE_IT = 5
"""Cells with one value, on average, up to which a value is somebody's."""
_LEAST_CELLS = 20
"""Fewer cells are often all different by chance."""
_COUNTED = 500_000
"""Cells that are counted at once."""
_MANY_WORDS = 5
_MIXES = 5
_CELL = pl.col("cell")


class Recognized(NamedTuple):
    """What the cells of a column look like, in the plural, and in how many cells.

    `direct`: whether a value says who somebody is, also among the labels of a class; if not, most
    people have one for themselves.
    """

    kind: str
    n_cells: int
    direct: bool

    @property
    def are_numbers(self) -> bool:
        """Whether they are just numbers, each somebody's own."""
        return self.kind == _NUMBERS


def identifying_columns(
    original: TextTable,
    release: TextTable,
    *,
    qis: Sequence[str],
    sensitive: Sequence[str],
    keep: Sequence[str],
    markers: Sequence[str],
) -> Iterator[tuple[str, Recognized]]:
    """Yield the columns of a release that hold direct identifiers, or tell of persons in sentences.

    Of a quasi-identifier, labels that name cells of the original count. Numbers that are measured,
    as a dose, may be different for everybody in a sensitive attribute or a quasi-identifier: these
    are what the promises are about. Numbers that look like those of accounts may not.
    """
    for name in (*keep, *sensitive, *qis):
        if name not in release.frame.columns:
            continue
        counted = counted_cells(original if name in qis else release, name, markers)
        found = _recognized(name, counted)
        if found is None and name in keep:
            found = _of_few(counted["cell"], counted["n"])
        if found is None or not (found.direct or name in keep or not found.are_numbers):
            if name not in qis and (told := told_of(counted)):
                yield name, Recognized(*told, direct=True)
        elif name not in qis or (found.direct and _is_told(counted["cell"], texts(release, name))):
            yield name, found


def counted_cells(table: TextTable, name: str, markers: Sequence[str]) -> pl.DataFrame:
    """Return the different cells of a column, as text, and how often each occurs, `cell` and `n`.

    A column of a large table as text, or counted at once, takes more memory than all of its codes.
    """
    column = table.frame[name].alias("cell")
    starts = range(0, len(column), _COUNTED)
    parts = [column.slice(at, _COUNTED).value_counts(name="n") for at in starts]
    written = (pl.concat(parts) if parts else column.value_counts(name="n")).group_by("cell").sum()
    cells = texts(TextTable(table.path, written), "cell")
    some = pl.Series(~is_missing(cells, markers))
    return pl.DataFrame([cells, written["n"]]).filter(some).group_by("cell").sum().sort("cell")


def _is_told(cells: pl.Series, labels: pl.Series) -> bool:
    """Return whether a set or an end of a range among the labels is a cell of the original."""
    named = labels.unique().drop_nulls().str.extract_all(_PARTS).explode().drop_nulls()
    parts = pl.concat([named, named.str.split("-").explode()]).str.strip_chars().unique()
    return bool(cells.is_in(parts.implode()).any())


def recognized(column: pl.Series) -> Recognized | None:
    """Return what kind of direct identifiers a column of text holds; None: it seems to hold none.

    `column`: text, null where there is no value; numbers as text.
    """
    cells = column.drop_nulls().alias("cell")
    return _recognized(column.name, cells.value_counts(name="n").sort("cell"))


def _recognized(name: str, counted: pl.DataFrame) -> Recognized | None:
    there, times, n = counted["cell"], counted["n"], int(counted["n"].sum())
    if not n:
        return None
    if (found := _of_one_form(there, times, n)) is not None or n > _FEW_HAVE_IT * len(there):
        return found
    for kind, fits in () if _are_measured(there) else _looser(name, there):
        if fits.sum() > _MOST * len(there):
            return Recognized(kind, int(times.filter(fits).sum()), direct=True)
    return _of_their_own(there, int((times == 1).sum()), n)


def _of_few(there: pl.Series, times: pl.Series) -> Recognized | None:
    """Return what is of no known form, if most cells are those of one or two people.

    Numbers are so by chance, unless they look like those of accounts.
    """
    n_cells = int(times.filter(times <= _SHARED).sum())
    found = _of_their_own(there, n_cells, int(times.sum()))
    if found is None or (found.are_numbers and not found.direct):
        return None
    return Recognized("values that one or two people have", n_cells, direct=found.direct)


def _of_one_form(there: pl.Series, times: pl.Series, n: int) -> Recognized | None:
    forms = there.to_frame().select(**{kind: _CELL.str.contains(x) for kind, x in _FORMS.items()})
    for kind in _FORMS:
        fits = forms[kind]
        if (check := _CHECKS.get(kind)) is not None and fits.any():
            fits &= pl.Series([check(x) for x in there.set(~fits, "")], dtype=pl.Boolean)
        n_cells = int(times.filter(fits).sum())
        is_rare = kind == "e-mail addresses" or n_cells <= _FEW_HAVE_IT * fits.sum()
        if n_cells >= max(_SOME * n, 1) and is_rare and _enough(kind, n_cells, n):
            return Recognized(kind, n_cells, direct=True)
    return None


def _of_their_own(there: pl.Series, alone: int, n: int) -> Recognized | None:
    """Return what is of no known form, if most cells are different; `alone`: how many are."""
    if n < _LEAST_CELLS or alone <= _MOST * n:
        return None
    if there.str.contains(_NUMBER).all() or _are_measured(there):
        whole, lengths = there.str.contains(r"^\d+$"), there.str.len_chars()
        is_id = bool(whole.all()) and lengths.n_unique() == 1 and lengths[0] >= _ID_DIGITS
        found = Recognized(_NUMBERS, alone, direct=is_id)
        return found if alone >= _NEARLY_ALL * n else None
    words = there.str.count_matches(r"\s+").mean()
    is_text = isinstance(words, float) and words + 1 >= _MANY_WORDS
    return Recognized("free text" if is_text else "values of their own", alone, direct=is_text)


def _are_measured(there: pl.Series) -> bool:
    """Return whether all values are quantities in few units, or ratios such as `120/80`."""
    units = there.str.extract(_UNIT, 1)
    return bool(there.str.contains(_MEASURED).all()) and units.n_unique() <= _MOST_UNITS


def _enough(kind: str, n_cells: int, n: int) -> bool:
    """Return whether a kind whose form other values may have, too, is what most cells are."""
    return kind not in _NOT_ALONE or n_cells > _MOST * n


def _looser(name: str, there: pl.Series) -> list[tuple[str, pl.Series]]:
    """Return kinds of which few people share a value, and which of the values look like it."""
    n_digits = _CELL.str.count_matches(r"\d")
    phone = _CELL.str.contains(_PHONE) & _CELL.str.contains(_PHONE_SIGN)
    phone &= ~_CELL.str.contains(_NO_PHONE) & (n_digits >= _PHONE_DIGITS)
    serial = _CELL.str.contains(_SERIAL) & (n_digits > 1) & _CELL.str.contains(r"\p{L}")
    serial &= ~_CELL.str.contains(_NO_SERIAL) & (_CELL.str.len_chars() > _FEW_HAVE_IT)
    kinds = [("phone numbers", phone), ("names of people", _CELL.str.contains(_NAME))]
    if len(there) >= _LEAST_CELLS:
        kinds += [
            ("licence plates or serial numbers", serial),
            ("names of people", _CELL.str.contains(_OTHER_NAME)),
        ]
    kinds.append(("street addresses", _CELL.str.contains(_ADDRESS)))
    if re.search(_PLACE_NAME, name):
        kinds.append(("coordinates", _CELL.str.contains(_FRACTION)))
    fits = there.to_frame().select(each.alias(str(i)) for i, (_, each) in enumerate(kinds))
    return [(kind, fits[str(i)]) for i, (kind, _) in enumerate(kinds)]


def _is_iban(cell: str) -> bool:
    bare = cell.replace(" ", "").upper()
    moved = bare[4:] + bare[:4]
    return bool(bare) and int("".join(str(int(sign, 36)) for sign in moved)) % 97 == 1


def _is_card(cell: str) -> bool:
    if not cell[:1].isdigit():
        return bool(cell)
    digits = [int(sign) for sign in reversed(cell) if sign.isdigit()]
    doubled = (sum(divmod(2 * digit, 10)) for digit in digits[1::2])
    return bool(digits) and (sum(digits[::2]) + sum(doubled)) % 10 == 0


def _is_mixed(cell: str) -> bool:
    return any(sign.isdigit() for sign in cell) and any(sign.isalpha() for sign in cell)


def _is_token(cell: str) -> bool:
    """Return whether letters and digits, or capitals, are mixed as no word has them."""
    kinds = [(sign.isdigit(), sign.isupper()) for sign in cell if sign.isalnum()]
    return _is_mixed(cell) and sum(one != other for one, other in pairwise(kinds)) >= _MIXES


_CHECKS: dict[str, Callable[[str], bool]] = {
    "IBANs": _is_iban,
    "payment cards": _is_card,
    "vehicle identification numbers": _is_mixed,
    "hashes": _is_mixed,
    "tokens": _is_token,
}
