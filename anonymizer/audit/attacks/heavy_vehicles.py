"""Heavy vehicles: classes in which one weighs more than another."""

from collections.abc import Iterator

from anonymizer.audit.attack import Attack, Criterion, Question, Subject
from anonymizer.audit.findings import Figure, Finding, required
from anonymizer.audit.window_releases import WindowsCase


def heavy_vehicles(case: WindowsCase) -> Iterator[Finding]:
    """Look for classes in which a vehicle weighs more than one: more records than vehicles."""
    heavy = [
        each
        for each in case.classes
        if {each.count, *map(len, each.sensitive.values())} != {each.k}
        or any(total is not None and total["n"] > each.k for total in each.measures.values())
    ]
    share = max(((each.count - each.k + 1) / max(each.count, 1) for each in heavy), default=0.0)
    figures: dict[str, Figure] = {"n_classes": len(heavy), "share_max": share}
    yield required("heavy vehicles", figures, "one record each", holds=not heavy)


ATTACK = Attack(
    "heavy vehicles",
    Subject.WINDOWS,
    heavy_vehicles,
    (
        Question(
            "heavy vehicles",
            Criterion.INFERENCE,
            "Does every vehicle weigh as one in each group?",
            bar="one record each",
        ),
    ),
)
