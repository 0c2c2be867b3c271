"""Values of a column that may be writings of one: they count apart, and it is told.

`E11`, `diabetes` and `E11: diabetes` are one illness, so may be `cold, gout` and `gout, cold`,
`pos` and `positive`, `asthma` and `astma`, `17` and `ID: 17`. `cancer` and `lung cancer` look the
same and are two: so nothing is decided.
"""

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator
from itertools import combinations

from anonymizer.domain.plain_forms import bare_form, compared_form, plain_form

MOST_VALUES = 1_000
"""Of more than that none is looked at: a class needs few of many."""
_MOST_CHARS, _MOST_WORDS, _SHORT, _LONG = 60, 6, 4, 4
_FOOTNOTE = re.compile("[\u00b9\u00b2\u00b3\u2070-\u2079*\u2020\u2021\u00a7]+$")
_WORD = re.compile(r"[^\W_]+|[+<>=%]+|-$")
_SAYS_WHAT = re.compile(r"[^\W\d_]{3}|[^\W\d_]\d|\d[^\W\d_]")
"""Within a word that alone says what is meant: some letters, or a code."""
_OTHERWISE = frozenset({
    *("not", "no", "non", "never", "without", "un", "anti", "ex", "former", "post", "pre", "ohne"),
    *("nicht", "kein", "keine", "nie", "sans", "pas", "sin", "nunca", "senza", "zonder", "niet"),
    *("inte", "utan", "ikke", "+", "-"),
})  # fmt: skip
"""What makes the opposite, or something else, of the other words."""
_ROMAN = dict(zip(("i", "ii", "iii", "iv", "v", "vi", "vii", "viii"), "12345678", strict=True))
_NUMBERS, _IS_WORDED = re.compile(r"\d+"), re.compile(r"[^\W\d_]{2}")
_LEAST_GLUED, _LEAST_MISTYPED, _LEAST_REPLACED = 3, 6, 8
"""Letters from which values may differ by their joints alone, by a letter too few or two exchanged,
and by another letter (`Gambia`, `Zambia`)."""
_MOST_MISTYPED = 60
"""Letters up to which: a longer value is a text, and to leave out each of its letters in turn takes
the square of its length."""


def near_values(values: Collection[str]) -> int:
    """Return how many distinct values may be a writing of another one; 0 of more than 1,000.

    They have the same words in another order or with other signs between, further words, one word
    that is cut short, one letter that is another, or the same numbers beside words and without;
    or they are a pictogram beside words. Some 40 µs a value.
    """
    if len(values) > MOST_VALUES:
        return 0
    # Writings that count as one anyway are one here.
    meant = {compared_form(bare_form(plain_form(value).casefold())): value for value in values}
    words = [_words_of(value) for value in meant.values()]
    having = defaultdict[frozenset[str], list[int]](list)
    for i, each in enumerate(words):
        if any(map(_SAYS_WHAT.search, each)):
            having[each].append(i)
    near = {i for same in having.values() if len(same) > 1 for i in same}
    for i, each in enumerate(words):
        near.update(i for fewer in _parts(each) if fewer in having and not fewer & _OTHERWISE)
    near |= _cut_short(words) | _mistyped(meant) | _in_numbers(meant) | _pictured(meant)
    return len(near)


def _words_of(value: str) -> frozenset[str]:
    """Return the words of a value, folded, and its signs that mean something."""
    text = _FOOTNOTE.sub("", value) or value
    return frozenset(_in_digits(word) for word in _WORD.findall(plain_form(text).casefold()))


def _in_digits(word: str) -> str:
    """Return a numeral, Roman to eight or a single sign of another script, in digits."""
    if len(word) == 1 and not word.isascii():
        number = unicodedata.numeric(word, 0.5)
        return f"{number:.0f}" if number.is_integer() else word
    return _ROMAN.get(word, word)


def _parts(words: frozenset[str]) -> Iterator[frozenset[str]]:
    """Yield some of the words, but for those that without the others mean something else."""
    if len(words) > _MOST_WORDS or words & _OTHERWISE:
        return
    for n in range(1, len(words)):
        yield from map(frozenset, combinations(sorted(words), n))


def _cut_short(words: Collection[frozenset[str]]) -> set[int]:
    """Return which values are one short word with which exactly one longer value begins."""
    single = {i: next(iter(each)) for i, each in enumerate(words) if len(each) == 1}
    letters = {i: word for i, word in single.items() if word.isalpha()}
    n_begin = Counter(
        word[:n] for word in letters.values() if len(word) >= _LONG
        for n in range(1, min(_SHORT + 1, len(word)))
    )  # fmt: skip
    return {i for i, word in letters.items() if len(word) <= _SHORT and n_begin[word] == 1}


def _mistyped(values: Collection[str]) -> set[int]:
    """Return which values are the same letters but for what joins them, or for one letter."""
    letters = {
        i: glued
        for i, value in enumerate(values)
        if len(glued := "".join(_WORD.findall(value))) >= _LEAST_GLUED and glued.isalpha()
    }
    of_glued, of_shorter = defaultdict[str, set[int]](set), defaultdict[str, set[int]](set)
    for i, glued in letters.items():
        of_glued[glued].add(i)
        of_shorter[glued].add(i)
        if _LEAST_MISTYPED <= len(glued) <= _MOST_MISTYPED:
            for at in range(len(glued)):
                of_shorter[glued[:at] + glued[at + 1 :]].add(i)
    same = [each for each in of_glued.values() if len(each) > 1]
    for each in of_shorter.values():
        same += [{i, j} for i, j in combinations(each, 2) if _is_slip(letters[i], letters[j])]
    return set[int]().union(*same)


def _is_slip(one: str, other: str) -> bool:
    """Return whether two texts that are alike without a letter of each are one by a slip."""
    if len(one) != len(other) or len(one) >= _LEAST_REPLACED:
        return True
    return sorted(one) == sorted(other)


def _in_numbers(values: Collection[str]) -> set[int]:
    """Return which values have words beside their numbers, or are numerals, and others digits."""
    having = defaultdict[tuple[str, ...], list[tuple[int, bool]]](list)
    for i, value in enumerate(values):
        in_digits = _in_digits(value)
        if numbers := tuple(_NUMBERS.findall(in_digits)):
            is_worded = in_digits != value or _IS_WORDED.search(value) is not None
            having[numbers].append((i, is_worded))
    return {
        i for each in having.values() if len({worded for _, worded in each}) > 1 for i, _ in each
    }


def _pictured(values: Collection[str]) -> set[int]:
    """Return which values are pictograms, if others are words: a tick beside a yes."""
    pictures = {
        i for i, value in enumerate(values) if value and unicodedata.category(value[0]) == "So"
    }
    return pictures if any(map(_IS_WORDED.search, values)) else set()
