"""What a release is worth: its figures."""

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
from pydantic import BaseModel, ConfigDict

from anonymizer.algorithms.attacks.linkability import homogeneity, link
from anonymizer.algorithms.attacks.released_classes import publish
from anonymizer.algorithms.records.measures import Measures, measure
from anonymizer.algorithms.records.problem import Cost
from anonymizer.app.tuning.bench import Bench
from anonymizer.app.tuning.model_score import score_of_release
from anonymizer.app.tuning.space import Configuration
from anonymizer.domain.arrays import Int32Array


class Trial(BaseModel):
    """What came of a configuration.

    Attributes
    ----------
    state
        `tried`; `impossible`: no release keeps the promise, and `why`; `pruned`: more is deleted
        than may be, so that no model was trained and no attack mounted.
    n_classes
        Equivalence classes.
    deletion
        Share of the records that are suppressed.
    lossless
        Whether none is.
    gcp
        Global certainty penalty (range), of which a record left out counts 1, and so does a
        quasi-identifier that is not published.
    reached_k, reached_d, reached_l
        Of the worst class.
    score
        Accuracy of a model that learned from the release; None: there is no target.
    linked
        Share of the published persons of whom one source tells a value of another, or a sensitive
        one, to the adversary who learns most.
    homogeneous
        Share of the published persons whose class has one value of a sensitive attribute.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    configuration: Configuration
    state: Literal["tried", "impossible", "pruned"]
    why: str | None = None
    n_classes: int = 0
    deletion: float = 1.0
    lossless: bool = False
    gcp: float = 1.0
    reached_k: int = 0
    reached_d: int = 0
    reached_l: int = 0
    score: float | None = None
    linked: float | None = None
    homogeneous: float | None = None


def figures(
    bench: Bench,
    class_of: Sequence[Int32Array],
    configuration: Configuration,
    *,
    n_qis: int,
    most: float,
) -> Trial:
    """Measure, attack and learn from the classes of each window.

    Parameters
    ----------
    n_qis
        Of the records, those included that are not published.
    most
        What deletes more is neither attacked nor learned from.
    """
    found = [
        measure(window.records, bench.schema, of)
        for window, of in zip(bench.windows, class_of, strict=True)
    ]
    n = max(sum(each.n for each in found), 1)
    n_out = sum(each.n_suppressed for each in found)
    there = [each for each in found if each.n_classes]
    trial = Trial(
        configuration=configuration,
        state="tried",
        n_classes=sum(each.n_classes for each in found),
        deletion=n_out / n,
        lossless=n_out == 0,
        gcp=sum(_loss(each, n_qis) * each.n for each in found) / n,
        reached_k=min((each.k for each in there), default=0),
        reached_d=min((d for each in there for d in each.d), default=0),
        reached_l=min((diverse for each in there for diverse in each.l), default=0),
    )
    if trial.deletion > most:
        return trial.model_copy(update={"state": "pruned"})
    learned = {"score": score_of_release(bench, class_of) if bench.judged else None}
    return trial.model_copy(update={**learned, **_learned_by_attacks(bench, class_of)})


def _loss(found: Measures, n_qis: int) -> float:
    """Return the GCP where quasi-identifiers that are not published are lost whole."""
    ncp = found.ncp[Cost.RANGE]
    return (sum(ncp) + n_qis - len(ncp)) / n_qis


def _learned_by_attacks(bench: Bench, class_of: Sequence[Int32Array]) -> Mapping[str, float | None]:
    n_persons = n_linked = n_alike = 0
    for window, of in zip(bench.windows, class_of, strict=True):
        seen = publish(window.records, bench.schema, of)
        leaks = link(seen, bench.schema, window.records, of)
        alike = homogeneity(seen, bench.schema, window.records, of)
        n_persons += len(np.unique(window.records.person[of >= 0]))
        n_linked += max((leak.n_people for leak in leaks), default=0)
        n_alike += max((each.n_people for each in alike), default=0)
    if not n_persons:
        return {"linked": None, "homogeneous": None}
    attacked = bench.schema.sensitive or len(bench.schema.sources) > 1
    return {
        "linked": n_linked / n_persons if attacked else None,
        "homogeneous": n_alike / n_persons if bench.schema.sensitive else None,
    }
