"""Windows together: who intersects the published windows of each vehicle.

One adversary knows little, one the company of each window, and one owns some of the vehicles.
"""

from collections.abc import Iterator

import numpy as np

from anonymizer.algorithms.records.problem import Cost
from anonymizer.audit.attack import NOTHING, Attack, Criterion, Question, Subject
from anonymizer.audit.findings import Finding
from anonymizer.audit.mathematics.known_company import KnownCompany
from anonymizer.audit.mathematics.window_intersection import Read, WindowIntersection
from anonymizer.audit.window_releases import WindowsCase, says_what_it_holds
from anonymizer.pipeline.records.declaration import Stream
from anonymizer.pipeline.records.window_model import label_cost_of


def windows_together(case: WindowsCase) -> Iterator[Finding]:
    """Intersect the windows of each vehicle, where a quasi-identifier lasts."""
    stream, n_owned = case.stream, case.n_owned
    lasts = any(qi.name in stream.lasting for qi in stream.schema.qis)
    if not lasts or not says_what_it_holds(stream):
        return
    attack = WindowIntersection(stream.schema, stream.lasting, d=stream.settings.promise.d)
    every = sorted({vehicle for each in case.windows for vehicle in each.joined.vehicle})
    chosen = np.random.default_rng(case.seed).permutation(len(every))[:n_owned].tolist()
    by_company, by_owner = (
        KnownCompany(
            stream.schema,
            stream.lasting,
            d=stream.settings.promise.d,
            by_hierarchy=label_cost_of(stream) is Cost.TAXONOMY,
            owned=owned,
        )
        for owned in ((), [every[i] for i in chosen])
    )
    in_company = stream.in_cohorts and stream.settings.enforces
    n_qis = len(stream.schema.qis)
    for each in case.windows:
        seen = each.labels, each.joined.vehicle, each.joined.cells[:, :n_qis]
        attack.window(*seen)
        if in_company:
            for company in (by_company, by_owner)[: 1 + bool(n_owned)]:
                company.window(*seen)
    yield from (_finding("windows together", read, stream) for read in attack.read())
    if in_company:
        yield from (_finding("known company", read, stream) for read in by_company.read())
    if in_company and n_owned:
        margin = stream.settings.promise.k_extra >= n_owned
        for read in by_owner.read():
            yield _finding(f"known company, {n_owned} its own", read, stream, required=margin)


def _finding(attack: str, read: Read, stream: Stream, *, required: bool = True) -> Finding:
    required &= stream.settings.enforces
    return Finding(
        attack=attack,
        attribute=read.attribute,
        figures={
            "n_vehicles": read.n_victims,
            "n_read": read.n_read,
            "n_below_d": read.n_short,
            "share_read": read.share,
        },
        bar=f"{stream.settings.promise.d} values left of each" if required else None,
        holds=read.n_short == 0 if required else None,
        required=required,
    )


_BAR = "d values left of each, where the stream enforces it"
ATTACK = Attack(
    "windows together",
    Subject.WINDOWS,
    windows_together,
    (
        Question(
            "windows together",
            Criterion.INFERENCE,
            "Do several periods of time, taken together, tell an attribute of a vehicle?",
            ("share_read",),
            n="n_vehicles",
            chance=0,
            against=NOTHING,
            bar=_BAR,
        ),
        Question(
            "known company",
            Criterion.INFERENCE,
            "Does somebody who owns some of the vehicles learn an attribute of another?",
            ("share_read",),
            n="n_vehicles",
            chance=0,
            against=NOTHING,
            bar=_BAR,
        ),
    ),
)
