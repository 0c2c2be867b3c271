"""Values of a column that may be writings of one: they count apart, and it is told.

`E11`, `diabetes` and `E11: diabetes` are one illness, so may be `cold, gout` and `gout, cold`, and
`pos` and `positive`. `cancer` and `lung cancer` look the same and are two: so nothing is decided.
"""

import re
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


def near_values(values: Collection[str]) -> int:
    """Return how many distinct values may be a writing of another one; 0 of more than 1,000.

    They have the same words in another order or with other signs between, further words, or one
    word that is cut short. Some 30 µs a value.
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
    near |= _cut_short(words)
    return len(near)


def _words_of(value: str) -> frozenset[str]:
    """Return the words of a value, folded, and its signs that mean something."""
    text = _FOOTNOTE.sub("", value) or value
    return frozenset(_WORD.findall(plain_form(text).casefold()))


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
