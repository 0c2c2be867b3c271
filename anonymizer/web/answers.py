"""Answers of the toll API, from queries to the JSON models; shared by HTTP and the MCP tools."""

from collections.abc import Sequence
from datetime import date, datetime, timedelta, timezone
from typing import Literal, NamedTuple, TypeAlias

from anonymizer.algorithms.records.generalized_values import Language
from anonymizer.codecs.paths import JsonPath
from anonymizer.pipeline.records.declaration import Stream
from anonymizer.pipeline.records.queries import Answer, Queries, Refusal
from anonymizer.pipeline.records.store_port import PublishedWindow, ReleaseStore
from anonymizer.web.schemas import (
    ClusteringSummary,
    Generalization,
    PrivacyProtection,
    ReleaseEntry,
    ReleaseList,
    Statistics,
    TollAnswer,
    TollClass,
)

Lang: TypeAlias = Literal["zh", "en"]
SHOWN = ("section_region", "time_period", "avg_toll")
"""Names of the attributes that a stream must publish so that the toll API can answer from it."""
MOST_K = 1000
MOST_ROWS = 10_000
_HUNDRED = 100.0


class _Words(NamedTuple):
    category: str
    input_source: str
    description: str
    geographic: str
    temporal: str


_WORDS = {
    "zh": _Words(
        "📊 流量统计类（k-匿名保护）",  # noqa: RUF001  as in Chinese
        "原始出口交易记录",
        "基于聚类的自适应泛化",
        '聚类内section_id公共前缀 + "区域"',
        "聚类内时间范围泛化",
    ),
    "en": _Words(
        "📊 traffic statistics (k-anonymous)",
        "exit transactions as recorded",
        "adaptive generalization after clustering",
        'common prefix of the section ids of a cluster + " area"',
        "the hours that the exits of a cluster lie in",
    ),
}


class Page(NamedTuple):
    """One page of an answer, and the number of rows of the whole answer."""

    body: TollAnswer
    n_rows: int


def toll_answer(
    queries: Queries,
    first: date | None,
    last: date | None,
    k: int | None,
    *,
    lang: Lang = "zh",
    limit: int = MOST_ROWS,
    offset: int = 0,
) -> Page | Refusal:
    """Return the classes of a range of days, in the JSON form of the published API.

    `k`: None: the smallest k that the releases allow.
    """
    answer = queries.answer(first, last, k)
    if isinstance(answer, Refusal):
        return answer
    language = Language(lang)
    rows = [
        TollClass.model_validate(queries.row(cell, language) | {"k_anonymized": True})
        for cell in answer.cells[offset : offset + limit]
    ]
    words = _WORDS[lang]
    body = TollAnswer(
        data=rows,
        count=len(rows),
        category=words.category,
        privacy_protection=PrivacyProtection(
            method="KACA (K-Anonymity Clustering Algorithm)",
            k_value=answer.k,
            input_source=words.input_source,
            quasi_identifiers=_fields_of(queries.stream),
            clustering=ClusteringSummary(
                algorithm=_algorithm(queries.stream),
                clusters=len(answer.cells),
                description=words.description,
            ),
            generalization=Generalization(geographic=words.geographic, temporal=words.temporal),
            statistics=_statistics(answer),
        ),
    )
    return Page(body, len(answer.cells))


def _fields_of(stream: Stream) -> list[str]:
    """Return where each quasi-identifier is in the payloads: the time of the day is their time."""
    settings = stream.settings
    time_of = {name: source.time for source in settings.sources for name in source.tells}
    return [
        str(JsonPath.of(a.path or (time_of[a.name] if a.time_of_day else (a.name,))))
        for a in settings.attributes
        if a.role == "qi"
    ]


def release_list(
    store: ReleaseStore, streams: Sequence[Stream], *, limit: int, offset: int
) -> ReleaseList:
    """Return the releases of streams, newest first."""
    offset_h = {s.settings.name: s.settings.utc_offset_h for s in streams}
    names = list(offset_h)
    releases = store.newest(names, limit=limit, offset=offset)
    data = [_entry(release, offset_h[release.stream]) for release in releases]
    return ReleaseList(data=data, count=len(data), total=store.count(names))


def _entry(release: PublishedWindow, utc_offset_h: float) -> ReleaseEntry:
    zone = timezone(timedelta(hours=utc_offset_h))

    def local(unix_s: float) -> str:
        return (datetime.fromtimestamp(0, zone) + timedelta(seconds=unix_s)).isoformat(
            timespec="seconds"
        )

    return ReleaseEntry(
        stream=release.stream,
        start=local(release.start),
        end=local(release.end),
        closed_at=local(release.closed_at),
        k=release.k,
        classes=release.n_classes,
        total_records=release.n_records,
        suppressed_records=release.n_records - release.n_published,
    )


def _algorithm(stream: Stream) -> str:
    if stream.settings.method == "kmeans":
        return "K-Means"
    return "recursive halving with local recutting"


def _statistics(answer: Answer) -> Statistics:
    n, n_published = answer.n_records, answer.n_published
    return Statistics(
        total_records=n,
        anonymized_groups=len(answer.cells),
        suppressed_records=n - n_published,
        # Rounded down, so that 100 % means that nothing was suppressed.
        retention_rate=n_published * 10_000 // n / _HUNDRED if n else None,
    )
