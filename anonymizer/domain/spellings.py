"""Spellings that mean the same in any column: normal forms of text, and words for no value."""

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
_SAME_MARKS = str.maketrans(
    dict.fromkeys("\u2010\u2011\u2012\u2013\u2212\ufe63\uff0d", "-")
    | dict.fromkeys("\u2018\u2019\u02bc\u2032", "'")
)
_FORMAT = "Cf"


def plain_form(text: str) -> str:
    """Return a text in normal form (NFKC): digits of any script as 0 to 9, blanks single, no signs
    without a width, one dash and one apostrophe.
    """  # noqa: D205  a list
    if text.isascii():
        if text.isprintable() and "  " not in text:
            return text.strip()
        return " ".join(text.replace("\0", " ").split())
    text = unicodedata.normalize("NFKC", text).translate(_SAME_MARKS)
    signs = (
        str(unicodedata.decimal(sign)) if sign.isdecimal() else sign
        for sign in text
        if unicodedata.category(sign) != _FORMAT
    )
    return " ".join("".join(signs).split())
