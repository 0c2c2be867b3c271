"""Density leak: the size of a region may tell how dense it is where its device is."""

import numpy as np

from anonymizer.domain.arrays import IntArray


def band_accuracy(size: IntArray, band: IntArray, half: IntArray) -> float | None:
    """Return how often the band of density most frequent for its size is a record's own.

    Parameters
    ----------
    size
        Nodes of each record's region, shape (records,). All equal: the result is the base rate.
    band
        Its band of density, >= 0, shape (records,).
    half
        0 or 1 for each record: what is guessed for one half is learned from the other. Records
        of one pseudonym belong in one half, they are too alike.

    Returns
    -------
    accuracy
        None without records. A size not learned is guessed as the most frequent band of all.
    """
    if not len(band):
        return None
    sizes, size_of = np.unique(size, return_inverse=True)
    n_right = 0
    for tested in (0, 1):
        counts = np.zeros((len(sizes), int(band.max()) + 1), np.int64)
        np.add.at(counts, (size_of[half != tested], band[half != tested]), 1)
        likeliest = np.where(counts.any(axis=1), counts.argmax(axis=1), counts.sum(axis=0).argmax())
        n_right += int((likeliest[size_of] == band)[half == tested].sum())
    return n_right / len(band)
