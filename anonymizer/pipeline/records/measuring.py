"""Sums of measures over classes."""

import numpy as np

from anonymizer.algorithms.kaca.coarsening import Total
from anonymizer.algorithms.records.classes import SUPPRESSED
from anonymizer.domain.arrays import Int32Array
from anonymizer.pipeline.records.declaration import Stream

_DECIMALS = 6


def totals_of(
    stream: Stream, class_of: Int32Array, person: Int32Array, codes: Int32Array
) -> list[dict[str, Total | None]]:
    """Return the totals of each class, by the names of the measures.

    None where fewer than k persons of the class have a value: that of one is his own.

    Parameters
    ----------
    class_of, person
        Classes from 0 up without a gap, `SUPPRESSED` where left out, and persons, shape (n,).
    codes
        Of the measures, shape (n, measures).
    """
    n_classes = int(class_of.max(initial=SUPPRESSED)) + 1
    totals: list[dict[str, Total | None]] = [{} for _ in range(n_classes)]
    for j, measure in enumerate(stream.measures):
        has = (class_of != SUPPRESSED) & (codes[:, j] != measure.missing)
        c, value = class_of[has], measure.position[codes[has, j]]
        n = np.bincount(c, minlength=n_classes)
        total = np.bincount(c, weights=value, minlength=n_classes)
        persons = np.unique(np.column_stack([c, person[has]]), axis=0)[:, 0]
        enough = np.bincount(persons, minlength=n_classes) >= stream.promise.k
        for i in range(n_classes):
            told = Total(int(n[i]), round(float(total[i]), _DECIMALS)) if enough[i] else None
            totals[i][measure.name] = told
    return totals
