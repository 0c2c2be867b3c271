"""One row of each person: nobody weighs more than others in a release.

A class of k persons in which one has 80 rows has that person's values 80 times: whoever knows that
somebody has many rows reads them from the lists, counts and means of the class.
"""

from dataclasses import replace

import numpy as np

from anonymizer.algorithms.records.ordering import numbered
from anonymizer.domain.arrays import FloatArray
from anonymizer.files.coded_table import CodedTable


def one_row_each(
    coded: CodedTable, measure: FloatArray, *, seed: int
) -> tuple[CodedTable, FloatArray]:
    """Return a table with one row of each person, and its measures, NaN where it has none.

    Notes
    -----
    Every row of a person is drawn with the same probability, by the seed and the content of the
    rows; their order in the table plays no part. A table without repeats stays as it is.
    O(n columns log n).
    """
    person = coded.records.person
    times = np.bincount(person)
    if times.max(initial=0) <= 1:
        return coded, measure
    ranks = [np.unique(column, return_inverse=True)[1] for column in measure.T]
    content = numbered(
        np.column_stack([coded.records.qi, coded.records.sensitive, coded.open_code, *ranks])
    )
    order = np.lexsort((content, person))
    there = np.flatnonzero(times)
    share = np.random.default_rng(seed).random(len(there))
    drawn = (np.cumsum(times) - times)[there] + (share * times[there]).astype(np.int64)
    own = np.sort(order[drawn])
    records = replace(
        coded.records.only(own), person=numbered(person[own][:, None]).astype(np.int32)
    )
    one_each = replace(
        coded,
        records=records,
        row=coded.row[own],
        open=coded.open[own] if coded.open.width else coded.open,
        open_code=coded.open_code[own],
    )
    return one_each, measure[own]
