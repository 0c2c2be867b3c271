"""The methods that form classes in the multi-source experiment."""

import time
from enum import StrEnum

import numpy as np

from anonymizer.algorithms.models.registry import MODELS
from anonymizer.algorithms.records.class_methods import warm_up
from anonymizer.algorithms.records.former import Former
from anonymizer.algorithms.records.task import TimeBudget
from anonymizer.domain.arrays import Int32Array
from anonymizer.domain.promises import Promise
from anonymizer.domain.records import Records, Schema


class Method(StrEnum):
    """Methods that are compared; see `MODELS`."""

    HILBERT = "hilbert"
    """The paper's Algorithm 2; with l, the same sweep in place of its Algorithm 3."""
    PRINTED = "printed"
    """The paper's Algorithm 3 with its bucket lists."""
    BEST = "best"
    """Our search."""
    MONDRIAN = "mondrian"
    """The baseline."""


def form_classes(
    records: Records,
    schema: Schema,
    promise: Promise,
    method: Method,
    *,
    best_s: float = 0.0,
    seed: int = 0,
) -> Int32Array:
    """Return the class of each record, shape (n,).

    Parameters
    ----------
    best_s
        Time budget of `best`, in seconds of CPU: what it finds then does not depend on what else
        the machine does.
    """
    former = Former(schema=schema, promise=promise, model=MODELS["kld"], method=method, seed=seed)
    return former.classes(records, time_left=TimeBudget(best_s, time.process_time))


def compile_methods(records: Records, schema: Schema) -> None:
    """Compile the methods on a few records, before they are timed."""
    few = records.only(np.arange(min(records.n, 100)))
    for l in (1, 2) if schema.sensitive else (1,):  # noqa: E741  the field's name for it
        promise = Promise(k=2, d=2, l=l)
        warm_up(Method.BEST, schema, promise)
        for method in set(Method) - {Method.BEST}:
            form_classes(few, schema, promise, method)
