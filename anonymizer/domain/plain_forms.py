"""Plain forms of texts: what is left of a writing if it is only looked at for what it means."""

import re
import unicodedata
from collections.abc import Callable
from functools import lru_cache
from html import unescape

from anonymizer.domain.date_forms import in_digits

_SAME_MARKS = str.maketrans(
    dict.fromkeys(
        "\u2010\u2011\u2012\u2013\u2014\u2015\u2043\u207b\u208b\u2212\u2796\ufe58\ufe63\uff0d"
        "\u058a\u05be",
        "-",
    )
    | dict.fromkeys("\u2018\u2019\u201a\u201b\u02b9\u02bb\u02bc\u2032\u2035\u00b4", "'")
    | dict.fromkeys("\u201c\u201d\u201e\u201f\u00ab\u00bb\u2033\u2036\u301d\u301e\u301f", '"')
    | {"\u2044": "/", "\u02da": "\u00b0"}
)
_BESIDE_DIGITS = (
    (re.compile(r"(?<=\d) ?\u00ba|\u00ba(?=[CF]\b)"), "\u00b0"),
    (re.compile(r"(?<=\d)(?=[\u00b2\u00b3\u00b9\u2070-\u207f])"), "^"),
    (re.compile(r"(?<=\d)(?=[\u2080-\u208e])"), "_"),
    (re.compile(r"(?<=\d)(?=[\u00bc-\u00be\u2150-\u215f\u2189])"), " "),
    (re.compile(r"(?<=\d)([\u2460-\u249b\u24ea])"), r"(\1)"),
)
"""A degree that is written as an ordinal, and what would become a further digit of a number: a
power, an index, a fraction, a number in a circle."""
_NO_DIGITS = re.compile(
    "[\u00b2\u00b3\u00b9\u00ba\u00bc-\u00be\u2070-\u208e\u2150-\u215f\u2189\u2460-\u249b\u24ea]"
)
_UNSEEN = re.compile(
    r"[\0-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\ufe00-\ufe0f\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    r"\u2800\u3164\uffa0\U000e0100-\U000e01ef]"
)
"""Controls, fillers, and what chooses between two pictures of a sign."""
_POINTS = re.compile(
    r"[\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640\u064b-\u0652\u0656-\u065f\u0670]"
)
"""Vowels and the lengthening stroke of Hebrew and Arabic, which are mostly left out."""
_ONE_KEYBOARD = str.maketrans("\u06cc\u0649\u06a9", "\u064a\u064a\u0643")
"""Letters of Persian keyboards that are written for Arabic ones."""
_MISREAD = re.compile("[\u00c2\u00c3][\u0080-\u00bf]|\u00e2\u20ac|[\u00d0\u00d1].")
"""UTF-8 that was read as the code page of Windows."""
_ENTITY = re.compile("&#?\\w{2,8};")
_OPENED = re.compile(r"=?\"(.*)\"|'(.*)'|=?(.+)", re.DOTALL)
_BETWEEN_LETTERS = re.compile(r"(?<=[^\W\d])[_\-/. ]+(?=[^\W\d])")
_LATIN = "aceopxyijsABCEHIJKMOPSTXYABEZHIKMNOPTYXo"
_ALIKE = (
    "\u0430\u0441\u0435\u043e\u0440\u0445\u0443\u0456\u0458\u0455"
    "\u0410\u0412\u0421\u0415\u041d\u0406\u0408\u041a\u041c\u041e\u0420\u0405\u0422\u0425\u0423"
    "\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7\u03bf"
)
"""Cyrillic and Greek letters that look like the Latin ones."""
_N_CYRILLIC = 25
_TO_LATIN = str.maketrans(_ALIKE, _LATIN)
_TO_CYRILLIC = str.maketrans(_LATIN[:_N_CYRILLIC], _ALIKE[:_N_CYRILLIC])
_OTHER = "\u0370-\u03ff\u0400-\u04ff"
_MIXED = re.compile(rf"\w*(?:[A-Za-z][{_OTHER}]|[{_OTHER}][A-Za-z])\w*")
"""A word of letters of two scripts next to each other."""
_COMPARED = tuple(
    (frozenset(signs), re.compile(form), put)
    for signs, form, put in (
        ("pP", r"(?i)(?<=\d) ?(?:per ?cent|pct|prozent|procent|pour ?cent|por ?ciento)\b", "%"),
        ("\u2265=", "\u2265|=>", ">="),
        ("\u2264=\u2265", "\u2264|=<", "<="),
        ("[({", r"^[\[({]([^\[\](){}]*\d[^\[\](){}]*)[\])}]$", r"\1"),
        (" ", r" +-(?: +|$)", "-"),
        (" ", r" +(?=[^\w\s-])|(?<=[^\w\s]) +|(?<=\d) +(?=-)", ""),
        (",", r"(?<=\d),(?=\d{3}(?:\D|$))", ""),
        (
            " _-",
            r"(?<=\d) +(?=\w)(?!\d+/\d)|(?<=[^\W\d])[ _-](?=\d)|(?<=\d)[_-](?=[^\W\d])",
            "",
        ),
        (".", r"^([^\W\d]\d[\da-zA-Z])\.(?=[\da-zA-Z]{1,4}$)", r"\1"),
    )
)
"""What is written in several ways, and how it is compared, in this order; before it, the signs of
which a text has one if it is written so, there or by what came before."""
_CODED = re.compile(r"(?i)^([^\W\d][^\d()\[\]]*?) ?[ (\[]([a-z]\d\d(?:\.?\d)?)[)\]]?$")
"""Words before a code, which others put first."""
_SIGNS = frozenset[str]().union(*(signs for signs, _, _ in _COMPARED))
_FORMAT = "Cf"
_WHOLE, _APART = 4, re.compile(r"[\W_]+")
_MARKS = re.compile(r"\.+|_+|-+|/+|\?+")
_ANSWER, _AROUND = frozenset({"none"}), "".join(map(chr, range(33, 48))) + " :;<=>?@[]^_`{|}~"
_ENDS, _CODE_ENDS = frozenset(">})"), frozenset("0123456789)]")
_YO = ("\u0435\u0308", "\u0415\u0308")
"""The Russian letter that is mostly written without its dots."""
_LEAST_WITH_ACCENTS = 4
"""A shorter word may be another one with another accent."""


def plain_form(text: str) -> str:
    """Return a text in normal form (NFKC): digits of any script as 0 to 9, blanks single, no signs
    without a width, one dash and one apostrophe; a word of Latin and Cyrillic letters, which nobody
    writes on purpose, in one script; a date with a month in words, or in Chinese, in digits.
    """  # noqa: D205  a list
    if "&" in text and _ENTITY.search(text):
        text = unescape(text)
    if text[-1:] in _ENDS:
        from anonymizer.domain.wrapped_texts import unwrapped  # noqa: PLC0415  few texts are

        text = unwrapped(text)
    if text.isascii():
        if text.isprintable() and "  " not in text:
            return in_digits(text.strip())
        return in_digits(" ".join(_UNSEEN.sub("", text.replace("\0", " ")).split()))
    text = _as_meant(text)
    if _NO_DIGITS.search(text):
        for found, put in _BESIDE_DIGITS:
            text = found.sub(put, text)
    text = text.translate(_SAME_MARKS)  # NFKC makes two signs of some marks
    text = unicodedata.normalize("NFKC", text).translate(_SAME_MARKS)
    signs = (
        str(unicodedata.decimal(sign)) if sign.isdecimal() else sign
        for sign in _POINTS.sub("", _UNSEEN.sub("", text)).translate(_ONE_KEYBOARD)
        if unicodedata.category(sign) != _FORMAT
    )
    return in_digits(_MIXED.sub(_in_one_script, " ".join("".join(signs).split())))


@lru_cache(16)
def no_value_among(markers: tuple[str, ...]) -> Callable[[str], bool]:
    """Return what tells whether a text in normal form says nothing: empty, a marker, or marks.

    Markers of several words, or of a long one, are known in any letter case, whatever joins their
    words and stands around them: `(Not_Stated).`, `N/a`. One of three letters may be a code.
    """
    exact = frozenset(("", "?", *markers))
    words = {_APART.sub(" ", each.casefold()).strip() for each in markers} - _ANSWER
    whole = {word for word in words if len(word) >= _WHOLE or " " in word}
    heads = {word[:2] for word in whole}

    def says_no_value(plain: str) -> bool:
        folded = plain.casefold()
        if folded.isalnum():
            return folded in whole or plain in exact
        if plain in exact or (plain[0] in "._-/?" and _MARKS.fullmatch(plain)):
            return True
        head = folded.lstrip(_AROUND)[:2]
        head = head if head.isalnum() else f"{head[:1]} "
        return head in heads and _APART.sub(" ", folded).strip() in whole

    return says_no_value


def bare_form(text: str) -> str:
    """Return a text in normal form without what people leave out or put in: quotation marks, marks
    at its end, accents of Latin and Greek letters, and what joins words.
    """  # noqa: D205  a list
    if text.isalpha() and text.isascii():
        return text
    found = _OPENED.fullmatch(text.replace("`", "'"))
    bare = text if found is None else (found[1] or found[2] or found[3] or "")
    bare = bare.lstrip("'").rstrip(".,;:'\" ") or text
    if not bare.isascii() and len(bare) >= _LEAST_WITH_ACCENTS:
        signs = unicodedata.normalize("NFD", bare.replace("\u0131", "i"))
        kept = (
            sign
            for i, sign in enumerate(signs)
            if not ("\u0300" <= sign <= "\u036f" and _is_left_out(signs, i))
        )
        bare = unicodedata.normalize("NFC", "".join(kept))
    if "@" in bare or any(sign.isdigit() for sign in bare):
        return bare
    return _BETWEEN_LETTERS.sub(" ", bare)


def compared_form(text: str) -> str:
    """Return a bare form as it is compared: without what joins or parts letters, digits and signs.

    Blanks and hyphens beside a digit, a bracket around all, the point of a code (`A01.1`), commas
    of thousands; `pct` is `%`, `\u2265` is `>=`. Never a sign: `-5`, `O-` and `C++` keep theirs.
    """
    if text.isalpha():
        return text
    if text[-1:] in _CODE_ENDS:
        text = _CODED.sub(r"\2 \1", text)
    has = _SIGNS.intersection(text)
    for signs, form, put in _COMPARED if has else ():
        if not signs.isdisjoint(has):
            text = form.sub(put, text)
    return text


def in_latin_letters(text: str) -> str:
    """Return a text in small letters, Cyrillic and Greek ones as the Latin ones they look like."""
    return text if text.isascii() else text.upper().translate(_TO_LATIN).casefold()


def _is_left_out(signs: str, i: int) -> bool:
    """Return whether people leave an accent out: of Latin and Greek letters, and of Russian yo."""
    accent = signs[i]
    while i and unicodedata.combining(signs[i]):
        i -= 1
    letter = signs[i]
    return letter.isascii() or "\u0370" <= letter <= "\u03ff" or (letter + accent in _YO)


def _as_meant(text: str) -> str:
    """Return a text whose UTF-8 was read as the code page of Windows as it was meant."""
    if _MISREAD.search(text):
        try:
            return text.encode("cp1252").decode("utf-8")
        except UnicodeError:
            pass
    return text


def _in_one_script(word: re.Match[str]) -> str:
    """Return a mixed word in Latin, or in Cyrillic if some letter of it is Cyrillic alone."""
    latin = word[0].translate(_TO_LATIN)
    others = [sign for sign in latin if "\u0370" <= sign <= "\u04ff"]
    if not others:
        return latin
    return word[0].translate(_TO_CYRILLIC) if min(others) >= "\u0400" else word[0]
