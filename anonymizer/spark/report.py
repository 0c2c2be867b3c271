"""Report on a release that was made range by range, added up from its parts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from anonymizer.algorithms.records.measures import Measures
from anonymizer.algorithms.records.problem import Cost
from anonymizer.files.meanings import Fold


@dataclass(frozen=True, slots=True, kw_only=True)
class RangesReport:
    """The criteria that a release reached, and its information loss."""

    n: int
    n_published: int
    suppressed: Mapping[str, int]
    """`n`, `n_published`, `suppressed`: rows of the table, published rows, and suppressed ones by
    reason; they add up."""
    n_ranges: int
    """Ranges that were anonymized one by one."""
    n_met: int
    """Records that met at the borders of ranges, and were anonymized there once more."""
    n_classes: int
    size_min: int
    size_max: int
    """`n_classes`, `size_min`, `size_max`: equivalence classes, and their sizes in records."""
    k: int
    """Fewest distinct persons of a class."""
    d: Mapping[str, int]
    l: Mapping[str, int]  # noqa: E741  the field's name for it
    max_share: Mapping[str, float]
    """`d`, `l`, `max_share`: fewest distinct values of each quasi-identifier and of each sensitive
    attribute in a class, and the largest share of a class with one value of a quasi-identifier, by
    name."""
    gcp: Mapping[str, float]
    gcp_published: Mapping[str, float]
    """`gcp`, `gcp_published`: global certainty penalty by form of the loss, 0 to 1, over all
    records that have an identifier, where a suppressed one counts 1, and over the published
    ones."""
    seconds: Mapping[str, float]
    """Time of each step, on the driver's clock."""
    folds: Sequence[Fold] = ()
    """Writings that count as one value, of identifiers, too, as in the report of `anonymize`."""
    warnings: Sequence[str] = ()
    """What cells were taken for, and whom writings joined, in the sentences of that report."""


def figures(found: Measures) -> dict[str, Any]:
    """Return the measures of some classes, none of them suppressed, in a form that adds up."""
    return {
        "n": found.n,
        "n_classes": found.n_classes,
        "size_min": found.size_min,
        "size_max": found.size_max,
        "k": found.k,
        "d": found.d,
        "l": found.l,
        "max_share": found.max_share,
        "lost": {form.name.lower(): sum(found.ncp[form]) * found.n for form in Cost},
    }


def added(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the figures of all parts together; at least one."""
    return reduce(_plus, parts[1:], dict(parts[0]))


def _plus(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    total = {name: one[name] + other[name] for name in ("n", "n_classes")}
    total |= {name: min(one[name], other[name]) for name in ("size_min", "k")}
    total["size_max"] = max(one["size_max"], other["size_max"])
    for name, worse in (("d", min), ("l", min), ("max_share", max)):
        total[name] = [worse(a, b) for a, b in zip(one[name], other[name], strict=True)]
    total["lost"] = {form: lost + other["lost"][form] for form, lost in one["lost"].items()}
    return total
