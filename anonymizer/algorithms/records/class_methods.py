"""Methods of classes that lose little: of the models that are about values."""

from collections.abc import Mapping

import numpy as np

from anonymizer.algorithms.models.registry import MODELS, USUAL
from anonymizer.algorithms.records.former import Former
from anonymizer.algorithms.records.hilbert import hilbert_order
from anonymizer.algorithms.records.methods import Method, searches
from anonymizer.algorithms.records.task import Task
from anonymizer.domain.arrays import Int32Array, IntArray
from anonymizer.domain.promises import Promise, bounds_sensitive
from anonymizer.domain.records import Records, Schema
from anonymizer.kernel_cache import current_background


def search_is_compiled() -> bool:
    """Return whether a search runs as machine code, see `kernels.runs_as_python`."""
    if current_background() is None:
        return True
    from anonymizer.algorithms.records.local_search import has_kernels  # noqa: PLC0415

    return has_kernels()


def warm_up(method: str, schema: Schema, promise: Promise) -> None:
    """Compile and load the kernels of a method of `METHODS` before its time is counted.

    In the background (`kernel_background`) those of a search are only asked for.
    """
    if searches(method):
        from anonymizer.algorithms.records import local_search  # noqa: PLC0415  see the top

        background = current_background()
        if background is None:
            local_search.warm_up(schema, promise)
        elif not search_is_compiled():
            background.submit(local_search.warm_up, schema, promise)
    elif method in METHODS:
        former = Former(schema=schema, promise=promise, model=MODELS[USUAL], method=method)
        METHODS[method](_synthetic(former))
    if method in METHODS and bounds_sensitive(promise):
        from anonymizer.algorithms.records.blind_classes import merged  # noqa: PLC0415  likewise

        former = Former(schema=schema, promise=promise, model=MODELS[USUAL], method=method)
        task = _synthetic(former)
        merged(task.problem, task.records.person)


def _synthetic(former: Former) -> Task:
    schema, promise = former.schema, former.promise
    number = np.arange(2 * promise.k, dtype=np.int32)
    codes = [
        np.array([number % each.size for each in columns], np.int32).reshape(-1, len(number)).T
        for columns in (schema.qis, schema.sensitive)
    ]
    some = Records(np.ascontiguousarray(codes[0]), np.ascontiguousarray(codes[1]), number)
    return Task(former=former, records=some, problem=former.problem(some))


def _best(task: Task) -> Int32Array:
    from anonymizer.algorithms.records.local_search import best  # noqa: PLC0415

    if task.work is None and not search_is_compiled():
        return _hilbert(task)  # as Python, a search would use its time for nothing
    time_left = task.time_left if task.work is None else None
    return best(
        task.problem,
        _order(task),
        dm_weight=task.former.dm_weight,
        prefer_share=task.former.prefer_share,
        share_price=task.former.share_price,
        keep_going=lambda: time_left is None or time_left() > 0,
        time_left=time_left,
        work=task.work,
        seed=task.former.seed,
        progress=task.progress,
        spent=task.spent,
    )


def _hilbert(task: Task) -> Int32Array:
    from anonymizer.algorithms.records.sweep import sweep  # noqa: PLC0415

    return sweep(task.problem, _order(task))


def _order(task: Task) -> IntArray:
    return hilbert_order(task.records.qi, [qi.size for qi in task.former.schema.qis])


def _mondrian(task: Task) -> Int32Array:
    from anonymizer.algorithms.records.mondrian import mondrian  # noqa: PLC0415

    return mondrian(task.problem)


def _printed(task: Task) -> Int32Array:
    from anonymizer.algorithms.records.bucket_sweep import bucket_sweep  # noqa: PLC0415

    return bucket_sweep(task.problem, _order(task), n_sensitive=len(task.former.schema.sensitive))


METHODS: Mapping[str, Method] = {
    "best": _best,
    "hilbert": _hilbert,
    "mondrian": _mondrian,
    "sighted": _best,
    "printed": _printed,
}
"""By name; each imports its kernels when it is called. They see all; see `blind_classes`."""
