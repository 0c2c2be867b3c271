"""Spellings that mean the same in any column: normal forms of text, and words for no value."""

import re
import unicodedata

NO_VALUE = (
    *("NA", "N/A", "n/a", "na", "#N/A", "#N/A N/A", "#NA", "<NA>", "NaN", "nan", "NAN", "-nan"),
    *("-NaN", "<NaN>", "null", "NULL", "Null", "(null)", "(NULL)", "<null>", "<NULL>", "[NULL]"),
    *("None", "undefined", "\\N", "NaT", ".", "..", "-", "--", "---", "\u2013", "\u2014"),
    *("n.a.", "N.A.", "n. a.", "#NV", "#NULL!", "#VALUE!", "#REF!", "#DIV/0!", "#NAME?", "#NUM!"),
    *("(blank)", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN", "0000-00-00", "0000-00-00 00:00:00"),
    *("inf", "-inf", "Infinity", "-Infinity"),
)
"""Words for a missing value: of pandas, R, SQL, spreadsheets, Stata, SAS, JavaScript and Python; a
dash; and infinities. `none` is not among them: it may say that somebody has no illness."""
TRUE = frozenset(
    {
        *("true", "t", "yes", "y", "1", "on", "wahr", "ja", "vrai", "oui", "verdadero"),
        *("si", "sí", "sim", "\u662f", "\u0434\u0430"),
    }
)
FALSE = frozenset(
    {
        *("false", "f", "no", "n", "0", "off", "falsch", "nein", "faux", "non", "falso"),
        *("não", "nao", "\u5426", "\u043d\u0435\u0442"),
    }
)
TRUTH = TRUE | FALSE
"""Words for true and false, folded."""
_MONTHS = (
    "january jan januar jaenner janner janvier janv enero ene gennaio gen janeiro januari",
    "february feb februar fevrier fevr febrero febbraio fevereiro fev februari",
    "march mar marz maerz mrz mars marzo marco maart mrt",
    "april apr avril avr abril abr aprile",
    "may mai mayo maggio mag maio mei",
    "june jun juni juin junio giugno giu junho",
    "july jul juli juillet juil julio luglio lug julho",
    "august aug aout agosto ago augustus",
    "september sep sept septembre septiembre settembre set setembro",
    "october oct oktober okt octobre octubre ottobre ott outubro out",
    "november nov novembre noviembre novembro",
    "december dec dezember dez decembre diciembre dic dicembre dezembro",
)
_MONTH_OF = {word: i + 1 for i, words in enumerate(_MONTHS) for word in words.split()}
"""In English, German, French, Spanish, Italian, Portuguese and Dutch, without accents."""
_NAMED_DATE = re.compile(
    r"(?:(?P<d>\d\d?)(?:st|nd|rd|th|er|\.|\u00ba)?[- ]*(?:de )?(?P<m>[^\W\d_]{3,10})\.?,?[- ]*"
    r"(?:del? )?(?P<y>\d{4})"
    r"|(?P<m2>[^\W\d_]{3,10})\.? (?P<d2>\d\d?)(?:st|nd|rd|th)?,? (?P<y2>\d{4})"
    r"|(?P<y3>\d{4})\u5e74(?P<m3>\d\d?)\u6708(?P<d3>\d\d?)\u65e5)(?P<rest>(?:[T, ]+\d.*)?)"
)
_SHORTEST_DATE = len("3Mar2024")
_MAYBE_DATE = re.compile(r"[^\W\d_]\D{0,3}\d{4}|\D \d\d?\D{1,3}\d{4}|\u5e74")
_SAME_MARKS = str.maketrans(
    dict.fromkeys("\u2010\u2011\u2012\u2013\u2212\ufe63\uff0d", "-")
    | dict.fromkeys("\u2018\u2019\u02bc\u2032", "'")
)
_LATIN = "aceopxyijsABCEHIJKMOPSTXY"
_ALIKE = (
    "\u0430\u0441\u0435\u043e\u0440\u0445\u0443\u0456\u0458\u0455"
    "\u0410\u0412\u0421\u0415\u041d\u0406\u0408\u041a\u041c\u041e\u0420\u0405\u0422\u0425\u0423"
)
"""Cyrillic letters that look like the Latin ones."""
_TO_LATIN, _TO_CYRILLIC = str.maketrans(_ALIKE, _LATIN), str.maketrans(_LATIN, _ALIKE)
_MIXED = re.compile(r"\w*(?:[A-Za-z][\u0400-\u04ff]|[\u0400-\u04ff][A-Za-z])\w*")
"""A word of letters of both scripts next to each other."""
_FORMAT = "Cf"


def plain_form(text: str) -> str:
    """Return a text in normal form (NFKC): digits of any script as 0 to 9, blanks single, no signs
    without a width, one dash and one apostrophe; a word of Latin and Cyrillic letters, which nobody
    writes on purpose, in one script; a date with a month in words, or in Chinese, in digits.
    """  # noqa: D205  a list
    if text.isascii():
        if text.isprintable() and "  " not in text:
            return _in_digits(text.strip())
        return _in_digits(" ".join(text.replace("\0", " ").split()))
    text = unicodedata.normalize("NFKC", text).translate(_SAME_MARKS)
    signs = (
        str(unicodedata.decimal(sign)) if sign.isdecimal() else sign
        for sign in text
        if unicodedata.category(sign) != _FORMAT
    )
    return _in_digits(_MIXED.sub(_in_one_script, " ".join("".join(signs).split())))


def _in_digits(text: str) -> str:
    """Return a date that names its month as `2024-03-03`, any other text as it is."""
    if len(text) < _SHORTEST_DATE or not _MAYBE_DATE.search(text):
        return text
    found = _NAMED_DATE.fullmatch(text)
    if found is None:
        return text
    day, name, year = (found[part] or found[f"{part}2"] or found[f"{part}3"] for part in "dmy")
    bare = unicodedata.normalize("NFKD", name.casefold())
    month = _MONTH_OF.get("".join(sign for sign in bare if not unicodedata.combining(sign)))
    month = int(name) if name.isdecimal() else month
    return text if month is None else f"{year}-{month:02}-{int(day):02}{found['rest']}"


def _in_one_script(word: re.Match[str]) -> str:
    """Return a mixed word in Latin, or in Cyrillic if some letter of it is Cyrillic alone."""
    latin = word[0].translate(_TO_LATIN)
    is_latin = not any("\u0400" <= sign <= "\u04ff" for sign in latin)
    return latin if is_latin else word[0].translate(_TO_CYRILLIC)
