"""What a class promises and costs, said as plainly as it can be."""

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

from anonymizer.algorithms.records.problem import Cost
from anonymizer.domain.promises import Promise
from anonymizer.domain.records import Attribute, Records, Schema

ROUNDING = 1e-9


def keeps(records: Records, schema: Schema, promise: Promise, member: Sequence[int]) -> bool:
    """Whether a class keeps a promise, by every way in which the margin may leave it."""
    if not _keeps(records, schema, replace(promise, margin=0), member):
        return False
    rest = replace(promise, k=1, d=0, l=promise.l if promise.l > 1 else 0, margin=0)
    asks = rest != Promise(k=1, d=0, l=0)
    return not asks or all(
        n_gone < len(member) and _keeps(records, schema, rest, sorted({*member} - {*gone}))
        for n_gone in range(1, promise.margin + 1)
        for gone in combinations(member, min(n_gone, len(member)))
    )


def _keeps(records: Records, schema: Schema, promise: Promise, member: Sequence[int]) -> bool:
    persons = [int(records.person[i]) for i in member]
    return (
        len(set(persons)) >= promise.k
        and all(_qi_keeps(records, j, a, promise, member) for j, a in enumerate(schema.qis))
        and all(
            _most([tuple(records.qi[i, list(source)].tolist()) for i in member], persons)
            <= promise.max_source_share + ROUNDING
            for source in schema.sources
            if len(source) > 1
        )
        and all(
            _sensitive_keeps(records, j, a, promise, member) for j, a in enumerate(schema.sensitive)
        )
    )


def _qi_keeps(
    records: Records, j: int, attribute: Attribute, promise: Promise, member: Sequence[int]
) -> bool:
    persons = [int(records.person[i]) for i in member]
    values = [int(records.qi[i, j]) for i in member]
    real = {v for v in values if v != attribute.missing}
    places = [float(attribute.position[v]) for v in real]
    wide = max(places) - min(places) if places else -1.0
    spread = promise.min_spread.get(attribute.name, 0.0)
    return (
        len(real) >= promise.d
        and _most(values, persons) <= promise.max_share + ROUNDING
        and (not spread or wide >= spread - ROUNDING)
    )


def _sensitive_keeps(
    records: Records, j: int, attribute: Attribute, promise: Promise, member: Sequence[int]
) -> bool:
    pairs = {(int(records.sensitive[i, j]), int(records.person[i])) for i in member}
    had = [value for value, _ in pairs]
    shares = [n / len(had) for n in Counter(had).values()]
    everybody = [int(v) for v in records.sensitive[:, j]]
    return (
        len(set(had) - {attribute.missing}) >= promise.l
        and -sum(s * math.log(s) for s in shares) >= math.log(promise.entropy_l) - ROUNDING
        and distance(attribute, had, everybody) <= promise.t + ROUNDING
    )


def _most(values: Sequence[object], persons: Sequence[int]) -> float:
    who_has = defaultdict(set)
    for value, person in zip(values, persons, strict=True):
        who_has[value].add(person)
    return max(len(who) for who in who_has.values()) / len(set(persons))


def n_above(records: Records, member: Sequence[int], share: float) -> int:
    """Columns with a value above the share in a class, but not in the whole table."""
    columns = [*records.qi.T.tolist(), *records.sensitive.T.tolist()]
    return sum(
        max(Counter(column[i] for i in member).values()) > share * len(member) + ROUNDING
        for column in columns
        if max(Counter(column).values()) <= share * len(column) + ROUNDING
    )


def distance(attribute: Attribute, values: Sequence[int], everybody: Sequence[int]) -> float:
    here, usual = Counter(values), Counter(everybody)
    off = [here[v] / len(values) - usual[v] / len(everybody) for v in range(attribute.size)]
    if not attribute.numeric:
        return sum(abs(x) for x in off) / 2
    ranked = sorted({*values, *everybody})
    crossing = [abs(sum(off[v] for v in ranked[: i + 1])) for i in range(len(ranked) - 1)]
    return sum(crossing) / max(len(ranked) - 1, 1)


def loss(records: Records, schema: Schema, cost: Cost, member: Sequence[int]) -> float:
    return sum(
        _loss(attribute, cost, {int(records.qi[i, j]) for i in member})
        for j, attribute in enumerate(schema.qis)
    )


def _loss(attribute: Attribute, cost: Cost, codes: set[int]) -> float:
    values = [v for v in range(attribute.size) if v != attribute.missing]
    if len(codes) == 1:
        return 0.0
    if not codes <= {*values}:
        return 1.0
    if cost is Cost.TAXONOMY and attribute.hierarchy is not None:
        path_of = attribute.hierarchy.ancestor.tolist()
        levels = zip(*(path_of[c] for c in codes), strict=True)
        lowest = next(level[0] for level in levels if len(set(level)) == 1)
        return sum(lowest in path_of[v] for v in values) / len(values)
    if attribute.numeric or cost is Cost.RANGE:
        places = [float(attribute.position[c]) for c in codes]
        domain = [float(attribute.position[v]) for v in values]
        return (max(places) - min(places)) / (max(domain) - min(domain))
    return (len(codes) - 1) / (len(values) - 1)
