"""Own records: one record of each vehicle in a window, which alone stands for it.

Lists, counts and sums in which a vehicle had all its records would say where the vehicle that
reports most is, and what it reports: whoever knows its habit takes the class with more records than
vehicles. So classes are formed, counted and summed of own records alone.
"""

from collections.abc import Sequence
from hashlib import blake2b

import numpy as np

from anonymizer.domain.arrays import BoolArray, Int32Array
from anonymizer.pipeline.records.topics import KEY_BYTES


def own_records(person: Int32Array, key: Sequence[bytes], seed: int) -> BoolArray:
    """Return which records are own records, one of each vehicle, shape (n,).

    Parameters
    ----------
    person, key
        Vehicle of each record as a number, and key as of `Joined`.
    seed
        Of the window, secret.

    Notes
    -----
    Each record of a vehicle is drawn with the same probability, by the vehicle's key and the seed:
    who sends others draws nothing anew for anybody else. A vehicle that repeats a value raises its
    odds, but has one record all the same. O(n log n), and a digest a vehicle with several.
    """
    order = np.argsort(person, kind="stable")
    _, first, times = np.unique(person[order], return_index=True, return_counts=True)
    at = first.copy()
    secret = seed.to_bytes(8, "little")
    for p in np.flatnonzero(times > 1).tolist():
        vehicle = key[order[first[p]]][:KEY_BYTES]
        drawn = int.from_bytes(blake2b(vehicle, key=secret, digest_size=8).digest(), "little")
        at[p] += drawn % int(times[p])
    own = np.zeros(len(person), np.bool_)
    own[order[at]] = True
    return own
