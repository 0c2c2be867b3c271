"""Ids of nodes as arrays, for code that builds networks and for analysts, who read them."""

from collections.abc import Collection, Iterable

import numpy as np
from numpy.typing import NDArray

from anonymizer.domain.network import NodeNames
from anonymizer.unfolding import check_texts


def node_ids(names: Iterable[object]) -> NodeNames:
    """Return a source's own names as one array: int64 where all are integers, else text.

    Text that spells an integer in the canonical way counts as an integer, because GraphML has
    text only; `007` does not, because it could not be distinguished from `7` afterwards.
    """
    texts = [str(name) for name in names]
    try:
        numbers = np.array([int(text) for text in texts], dtype=np.int64)
    except (ValueError, OverflowError):
        return text_ids(texts)
    if [str(number) for number in numbers.tolist()] == texts:
        return numbers
    return text_ids(texts)


def text_ids(texts: Collection[str]) -> NDArray[np.str_]:
    """Return ids as one array of text, each as wide as the longest."""
    check_texts(texts)
    return np.array(texts, dtype=np.str_)
