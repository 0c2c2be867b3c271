"""Windows together: who intersects the published windows of each vehicle.

One adversary knows little, one the company of each window, and one owns some of the vehicles.
"""

from collections.abc import Iterator

import numpy as np

from anonymizer.algorithms.records.problem import Cost
from anonymizer.algorithms.releases.released_classes import ReleasedLabels
from anonymizer.audit.attack import NOTHING, Attack, Criterion, Question, Subject
from anonymizer.audit.findings import Finding
from anonymizer.audit.mathematics.known_company import KnownCompany
from anonymizer.audit.mathematics.window_intersection import Read, WindowIntersection
from anonymizer.audit.window_members import candidates_of, codes_of_list
from anonymizer.audit.window_releases import WindowRelease, WindowsCase, says_what_it_holds
from anonymizer.domain.arrays import Int32Array
from anonymizer.pipeline.records.declaration import Stream
from anonymizer.pipeline.records.window_model import label_cost_of


def windows_together(case: WindowsCase) -> Iterator[Finding]:
    """Intersect the windows of each vehicle, where an attribute lasts."""
    stream, n_owned, asked = case.stream, case.n_owned, case.stream.settings.promise
    if not stream.lasting or not says_what_it_holds(stream):
        return
    qis = [qi.name for qi in stream.schema.qis if qi.name in stream.lasting]
    lists = [name for name in stream.lasting if name not in qis]
    on_labels, on_lists = (
        WindowIntersection(stream.schema, names, d=asked.d, l=asked.l) for names in (qis, lists)
    )
    every = sorted({vehicle for each in case.windows for vehicle in each.joined.vehicle})
    chosen = np.random.default_rng(case.seed).permutation(len(every))[:n_owned].tolist()
    by_company, by_owner = (
        KnownCompany(
            stream.schema,
            stream.lasting,
            d=asked.d,
            by_hierarchy=label_cost_of(stream) is Cost.TAXONOMY,
            owned=owned,
        )
        for owned in ((), [every[i] for i in chosen])
    )
    in_company = stream.in_cohorts and stream.settings.enforces
    n_qis = len(stream.schema.qis)
    for each in case.windows:
        seen = each.labels, each.joined.vehicle, each.joined.cells[:, :n_qis]
        on_labels.window(*seen)
        if lists:
            on_lists.window(*_seen_in_lists(each, stream))
        if in_company:
            for company in (by_company, by_owner)[: 1 + bool(n_owned)]:
                company.window(*seen)
    yield from (_finding("windows together", read, stream) for read in on_labels.read())
    yield from (_finding("windows together", read, stream) for read in on_lists.read())
    if in_company:
        yield from (_finding("known company", read, stream) for read in by_company.read())
    if in_company and n_owned:
        margin = asked.k_extra >= n_owned
        for read in by_owner.read():
            yield _finding(f"known company, {n_owned} its own", read, stream, required=margin)


def _seen_in_lists(
    window: WindowRelease, stream: Stream
) -> tuple[list[ReleasedLabels], list[bytes], Int32Array]:
    """Return what classes allow, their lists too, and the vehicles that are surely published.

    These are all if the classes have so many, else those of the classes whose members are certain:
    who was suppressed is in no list, so what an adversary reads there of it is no knowledge.
    """
    labels, n_qis, joined = [*window.labels], len(stream.schema.qis), window.joined
    for attribute, code_of in zip(stream.sensitive, stream.schema_code_of, strict=True):
        lists = (each.sensitive.get(attribute.name, ()) for each in window.classes)
        codes = (np.unique(code_of[codes_of_list(attribute, each)]).tolist() for each in lists)
        labels.append(ReleasedLabels.of([[(code, code) for code in each] for each in codes]))
    rows = np.arange(joined.n)
    if sum(each.k for each in window.classes) != len(np.unique(joined.person)):
        certain = [each.rows for each in candidates_of(window, stream) if each.certain]
        rows = np.unique(np.concatenate([rows[:0], *certain]))
    cells = joined.cells[rows, : len(labels)]
    cells[:, n_qis:] = stream.schema_codes(np.ascontiguousarray(cells[:, n_qis:]))
    return labels, [joined.vehicle[i] for i in rows.tolist()], cells


def _finding(attack: str, read: Read, stream: Stream, *, required: bool = True) -> Finding:
    required &= stream.settings.enforces
    asked = stream.settings.promise
    is_qi = any(qi.name == read.attribute for qi in stream.schema.qis)
    name, least = ("d", asked.d) if is_qi else ("l", asked.l)
    return Finding(
        attack=attack,
        attribute=read.attribute,
        figures={
            "n_vehicles": read.n_victims,
            "n_read": read.n_read,
            f"n_below_{name}": read.n_short,
            "share_read": read.share,
        },
        bar=f"{least} values left of each" if required else None,
        holds=read.n_short == 0 if required else None,
        required=required,
    )


_BAR = "d, or l, values left of each, where the stream enforces it"
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
