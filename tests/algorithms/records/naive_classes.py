"""Ways to form classes, in plain Python over lists: slow on purpose."""

from collections.abc import Callable, Sequence
from itertools import takewhile
from math import log

from hilbertcurve.hilbertcurve import HilbertCurve

from anonymizer.algorithms.records.problem import Cost
from anonymizer.domain.promises import Promise
from anonymizer.domain.records import Records, Schema
from tests.algorithms.records import naive

Rows = Sequence[Sequence[int]]
Keeps = Callable[[Sequence[int]], bool]

SUPPRESSED = -1


def hilbert_order(rows: Rows, sizes: Sequence[int]) -> list[int]:
    bits = max(1, (max(sizes) - 1).bit_length())
    place = HilbertCurve(bits, len(sizes)).distances_from_points(rows)
    return sorted(range(len(rows)), key=lambda i: (place[i], i))


def sweep(order: Sequence[int], keeps: Keeps) -> list[int]:
    """Return the class of each record: close when the promise is kept, join the rest backwards."""
    done: list[list[int]] = []
    open_class: list[int] = []
    for record in order:
        open_class.append(record)
        if keeps(open_class):
            done.append(open_class)
            open_class = []
    if open_class and done:
        for n_joined in range(1, len(done) + 1):
            together = [*(i for c in done[-n_joined:] for i in c), *open_class]
            if keeps(together):
                done[-n_joined:] = [together]
                break
    return class_of(len(order), done)


def sweep_by_sets(rows: Rows, order: Sequence[int], k: int, needed: Sequence[int]) -> list[int]:
    """Return the same for k, and so many values of each column: a set for each, as published."""
    done: list[list[int]] = []
    open_class: list[int] = []
    seen: list[set[int]] = [set() for _ in needed]
    for record in order:
        open_class.append(record)
        for values, value in zip(seen, rows[record], strict=True):
            values.add(value)
        if len(open_class) >= k and all(
            len(values) >= n for values, n in zip(seen, needed, strict=True)
        ):
            done.append(open_class)
            open_class = []
            seen = [set() for _ in needed]
    if done:
        done[-1] += open_class
    return class_of(len(order), done)


def mondrian(records: Records, schema: Schema, promise: Promise) -> list[int]:
    def keeps(member: Sequence[int]) -> bool:
        return bool(member) and naive.keeps(records, schema, promise, member)

    def value(i: int, j: int) -> int:
        return int(records.qi[i, j])

    def width(member: Sequence[int], j: int) -> float:
        places = [float(schema.qis[j].position[value(i, j)]) for i in member]
        return (max(places) - min(places)) / (schema.qis[j].span or 1.0)

    def cut(member: list[int]) -> list[list[int]]:
        by_width = sorted(range(len(schema.qis)), key=lambda j: -width(member, j))
        for j in takewhile(lambda j: width(member, j) > 0, by_width):
            median = sorted(value(i, j) for i in member)[(len(member) - 1) // 2]
            above = sum(value(i, j) > median for i in member)
            below = sum(value(i, j) < median for i in member)
            limit = median if above >= below else median - 1
            halves = (
                [i for i in member if value(i, j) <= limit],
                [i for i in member if value(i, j) > limit],
            )
            if keeps(halves[0]) and keeps(halves[1]):
                return [*cut(halves[0]), *cut(halves[1])]
        return [member]

    everyone = list(range(records.n))
    return class_of(records.n, cut(everyone) if keeps(everyone) else [])


def boxes(
    records: Records, schema: Schema, promise: Promise, cost: Cost, order: Sequence[int]
) -> list[int]:
    def keeps(member: Sequence[int]) -> bool:
        return naive.keeps(records, schema, promise, member)

    def merit(low: list[int], high: list[int]) -> float:
        both = [*low, *high]
        lost = [len(part) * naive.loss(records, schema, cost, part) for part in (low, high, both)]
        share = len(low) / len(both)
        entropy = -share * log(share) - (1 - share) * log(1 - share)
        return (lost[2] - (lost[0] + lost[1])) * entropy

    def cut(member: list[int]) -> list[list[int]]:
        best: list[tuple[float, list[int], list[int]]] = []
        for j in range(len(schema.qis)):
            found: list[tuple[float, list[int], list[int]]] = []
            for border in sorted({int(records.qi[i, j]) for i in member}, reverse=True)[1:]:
                low = [i for i in member if records.qi[i, j] <= border]
                high = [i for i in member if records.qi[i, j] > border]
                if min(len(low), len(high)) >= promise.k:
                    found.append((merit(low, high), low, high))
            best += [max(found, key=lambda each: each[0])] if found else []
        for saved, low, high in sorted(best, key=lambda each: -each[0]):
            if saved > 0 and keeps(low) and keeps(high):
                return [*cut(low), *cut(high)]
        return [member]

    everyone = list(order)
    return class_of(records.n, cut(everyone) if keeps(everyone) else [])


def class_of(n: int, classes: Sequence[Sequence[int]]) -> list[int]:
    out = [SUPPRESSED] * n
    for number, members in enumerate(classes):
        for i in members:
            out[i] = number
    return out
