"""Naive twin of the linkability attack, with labels as sets."""

from collections import defaultdict
from collections.abc import Sequence

from anonymizer.audit.mathematics.linkability import Knowledge
from anonymizer.domain.arrays import Int32Array
from anonymizer.domain.records import Attribute, Records, Schema

Allowed = frozenset[int]
"""Codes that a label allows."""


def allowed(codes: set[int], attribute: Attribute, *, sensitive: bool, tree: bool) -> Allowed:
    """Return the codes that the label of a class allows, given the codes of its members."""
    real = codes - {attribute.missing}
    marker = codes & {attribute.missing}
    if sensitive or not real:
        return frozenset(codes)
    if tree and attribute.hierarchy is not None:
        paths = [attribute.hierarchy.ancestor[c].tolist() for c in real]
        lowest = next(level[0] for level in zip(*paths, strict=True) if len(set(level)) == 1)
        below = {
            c
            for c in range(attribute.size)
            if lowest in attribute.hierarchy.ancestor[c].tolist() and c != attribute.missing
        }
        return frozenset(below | marker)
    if attribute.numeric:
        return frozenset(set(range(min(real), max(real) + 1)) | marker)
    return frozenset(codes)


def labels_of(
    records: Records, schema: Schema, class_of: Int32Array, *, tree: bool
) -> dict[int, list[Allowed]]:
    """Return the codes that the label of each class allows, column by column."""
    member = defaultdict(list)
    for i, c in enumerate(class_of.tolist()):
        if c >= 0:
            member[c].append(i)
    n_qis = len(schema.qis)
    return {
        c: [
            allowed({row(records, i)[j] for i in of}, a, sensitive=j >= n_qis, tree=tree)
            for j, a in enumerate((*schema.qis, *schema.sensitive))
        ]
        for c, of in member.items()
    }


def row(records: Records, i: int) -> list[int]:
    codes: list[int] = [*records.qi[i].tolist(), *records.sensitive[i].tolist()]
    return codes


def learned(
    records: Records,
    schema: Schema,
    class_of: Int32Array,
    *,
    knows: Knowledge,
    source: Sequence[int],
    tree: bool,
) -> set[tuple[int, int]]:
    """Return the cells (record and column) that an adversary who knows one source learns."""
    attributes = (*schema.qis, *schema.sensitive)
    labels = labels_of(records, schema, class_of, tree=tree)
    cells = set()
    for i, own in enumerate(class_of.tolist()):
        if own < 0:
            continue
        truth = row(records, i)
        candidates = [
            label
            for label in labels.values()
            if all(
                label[q] == labels[own][q] if knows is Knowledge.LABELS else truth[q] in label[q]
                for q in source
            )
        ]
        for j, attribute in enumerate(attributes):
            left = frozenset.union(*(label[j] for label in candidates)) - {attribute.missing}
            if len(left) == 1 and truth[j] != attribute.missing:
                assert left == {truth[j]}
                cells.add((i, j))
    return cells
