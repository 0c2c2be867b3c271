"""Searches in a cluster: bounded by work, so that a stage that is restored finds the same."""

from collections.abc import Sequence
from dataclasses import replace
from math import ceil

from anonymizer.algorithms.models.registry import MODELS
from anonymizer.algorithms.records.methods import WORK_PER_S, searches
from anonymizer.pipeline.records.declaration import Stream
from anonymizer.settings import StreamSettings

_LONGEST_TAKE_S = 240.0
"""For which a stage may work on one input where no stream asks for longer searches."""
_NO_TIME_S = 1e-9
"""Too little for any search, where a model would choose one by itself."""


def longest_take_s(streams: Sequence[StreamSettings]) -> float:
    """Return for how long a stage may work on one input.

    Twice the longest search, on slower machines and with all else, too.
    """
    searches_s = [each.budget_s for each in streams if searches(each.method)]
    return max(_LONGEST_TAKE_S, 2 * max(searches_s, default=0.0))


def by_work(stream: Stream) -> Stream:
    """Return a stream whose classes depend on its records alone, not on how long a search takes.

    `best` does as much work as takes about `budget_s`, and `auto` does not search.
    """
    settings = stream.settings
    method = MODELS[settings.model].method_name(settings.method, n=1, time_budget_s=0.0)
    work = ceil(settings.budget_s * WORK_PER_S) if searches(method) else None
    changes = {"method": method, "budget_s": _NO_TIME_S}
    return replace(stream, settings=settings.model_copy(update=changes), work=work)
