"""The declaration of a stream: what its flow needs, derived from the settings."""

import hashlib
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from anonymizer.algorithms.records.attributes import (
    Branch,
    Interval,
    categories,
    in_bands,
    numbers,
    places_of,
)
from anonymizer.algorithms.records.meanings import Reading, missing_words
from anonymizer.algorithms.windows import WindowRule
from anonymizer.codecs.paths import JsonPath
from anonymizer.codecs.record_parts import PartFormat, PartReader, ReportedValues
from anonymizer.domain.arrays import Int32Array
from anonymizer.domain.plain_forms import plain_form
from anonymizer.domain.promises import Promise
from anonymizer.domain.records import NO_CODE, Attribute, Schema
from anonymizer.domain.spellings import NO_VALUE
from anonymizer.errors import SettingsError
from anonymizer.settings import AttributeSettings, SourceSettings, StreamSettings
from anonymizer.settings.payloads import conditions

_HOUR_S = 3600.0
MOST_CLASSES = 100
"""Most categories of the target of a decision tree."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Stream:
    """One stream of records, as declared."""

    settings: StreamSettings
    schema: Schema
    """The attributes that the criteria are checked on. A sensitive number with bands is represented
    by its bands."""
    sensitive: tuple[Attribute, ...]
    measures: tuple[Attribute, ...]
    """`sensitive`, `measures`: sensitive attributes as reported, and measures. The columns of a
    joined record are its quasi-identifiers, then its sensitive attributes, then its measures."""
    schema_code_of: tuple[Int32Array, ...]
    """For each sensitive attribute, the code in `schema` of each of its codes."""
    promise: Promise
    rule: WindowRule
    """`settings`, `promise`, `rule`: the settings, and the promise and the windows that follow from
    them."""
    readers: tuple[PartReader, ...]
    """Reader of each source."""
    columns_of: tuple[tuple[int, ...], ...]
    """The columns that each source reports, in the order of its reader."""
    open_columns: frozenset[int]
    """The columns whose domain is what occurs in a window; until then it is empty."""
    shape: str
    """Digest that is equal for two declarations under which stored parts mean the same."""
    histories: str
    """Likewise, under which the histories of vehicles do; empty if no attribute lasts."""
    work: int | None = None
    """Work that a search may do in place of the time that it is given, see `Task`."""

    @property
    def attributes(self) -> tuple[Attribute, ...]:
        """The columns of a joined record."""
        return (*self.schema.qis, *self.sensitive, *self.measures)

    def schema_codes(self, codes: Int32Array) -> Int32Array:
        """Return the codes in `schema` for codes of the sensitive attributes, same shape."""
        converted = np.empty_like(codes)
        for j, schema_code_of in enumerate(self.schema_code_of):
            converted[:, j] = schema_code_of[codes[:, j]]
        return converted

    def in_window(self, values_of: Mapping[int, Sequence[str]]) -> "Stream":
        """Return the stream with the values of its open columns in a window, each once."""
        if not values_of:
            return self

        def known(column: int, attribute: Attribute) -> Attribute:
            if column not in values_of:
                return attribute
            return _open_attribute(attribute, values_of[column])

        schema, n_qis = self.schema, len(self.schema.qis)
        qis = tuple(known(i, qi) for i, qi in enumerate(schema.qis))
        sensitive = tuple(known(n_qis + j, a) for j, a in enumerate(self.sensitive))
        in_schema = [
            (attribute, np.arange(attribute.size, dtype=np.int32))
            if n_qis + j in values_of
            else (schema.sensitive[j], self.schema_code_of[j])
            for j, attribute in enumerate(sensitive)
        ]
        return replace(
            self,
            schema=replace(
                schema, qis=qis, sensitive=tuple(attribute for attribute, _ in in_schema)
            ),
            sensitive=sensitive,
            schema_code_of=tuple(code_of for _, code_of in in_schema),
        )

    @property
    def lasting(self) -> tuple[str, ...]:
        """Names of the attributes that do not change from window to window."""
        return tuple(a.name for a in self.settings.attributes if a.lasting)

    @property
    def in_cohorts(self) -> bool:
        """Whether vehicles are published in cohorts under `cumulative = "enforce"`."""
        return any(a.lasting and a.role == "qi" for a in self.settings.attributes)


def declare(
    settings: StreamSettings, *, branches: Mapping[str, Sequence[Branch]] | None = None
) -> Stream:
    """Return the stream that the settings declare.

    Raises `SettingsError` if a domain is invalid, or if no class could ever keep the promise.
    """
    trees = branches or {}
    of: dict[str, Attribute] = {}
    for declared in settings.attributes:
        try:
            of[declared.name] = _attribute(declared, trees.get(declared.name, ()))
        except ValueError as error:
            raise _settings_error(settings, f"attributes: {declared.name}: {error}") from None
    by_role = {
        role: [a.name for a in settings.attributes if a.role == role]
        for role in ("qi", "sensitive", "measure")
    }
    is_open = {a.name for a in settings.attributes if a.is_open}
    _check_feasible(settings, [of[name] for name in by_role["qi"]], settings.promise.promise.d, "d")
    bands_of = {a.name: a.bands for a in settings.attributes}
    sensitive = [of[name] for name in by_role["sensitive"]]
    in_schema = [_in_schema(attribute, bands_of[attribute.name]) for attribute in sensitive]
    _check_feasible(settings, [attribute for attribute, _ in in_schema], settings.promise.l, "l")
    learned = of.get(settings.learned or "")
    if learned is not None and len(learned.label) > MOST_CLASSES + 1:  # plus the missing marker
        problem = f"target: {learned.name} has more than {MOST_CLASSES} values"
        raise _settings_error(settings, problem)
    column = {name: i for i, name in enumerate(name for role in by_role.values() for name in role)}
    n_qis = len(by_role["qi"])
    columns_of = tuple(tuple(column[name] for name in s.tells) for s in settings.sources)
    reported = {a.name: _reported(a, of[a.name]) for a in settings.attributes}
    qis_of = (tuple(c for c in columns if c < n_qis) for columns in columns_of)
    return Stream(
        settings=settings,
        schema=Schema(
            qis=tuple(of[name] for name in by_role["qi"]),
            sensitive=tuple(attribute for attribute, _ in in_schema),
            sources=tuple(columns for columns in qis_of if columns),
        ),
        sensitive=tuple(sensitive),
        measures=tuple(of[name] for name in by_role["measure"]),
        schema_code_of=tuple(code_of for _, code_of in in_schema),
        promise=settings.promise.promise,
        rule=settings.rule,
        readers=tuple(_reader(settings, source, reported) for source in settings.sources),
        columns_of=columns_of,
        open_columns=frozenset(column[name] for name in is_open),
        shape=_shape(settings, of),
        histories=_histories(settings, of),
    )


def _reported(declared: AttributeSettings, attribute: Attribute) -> ReportedValues:
    values = [plain_form(x) for i, x in enumerate(attribute.label) if i != attribute.missing]
    return ReportedValues(
        attribute,
        declared.step,
        declared.missing,
        from_time=declared.time_of_day,
        path=None if declared.path is None else JsonPath.of(declared.path),
        is_open=declared.is_open,
        means=Reading.of(values, [1] * len(values)).means,
    )


def _reader(
    settings: StreamSettings, source: SourceSettings, reported: Mapping[str, ReportedValues]
) -> PartReader:
    path = source.vehicle_path
    try:
        return PartReader(
            [reported[name] for name in source.tells],
            PartFormat(
                time=JsonPath.of(source.time),
                utc_offset_s=settings.utc_offset_h * _HOUR_S,
                where=conditions(source.where),
                vehicle=None if path is None else JsonPath.of(path),
            ),
        )
    except ValueError as error:
        raise _settings_error(settings, f"sources: {source.name}: {error}") from None


def _open_attribute(attribute: Attribute, values: Sequence[str]) -> Attribute:
    # A window without any value still needs a domain to measure distances by.
    marker = attribute.label[attribute.missing]
    return categories(attribute.name, values or [""], marker=marker)


def _attribute(declared: AttributeSettings, branches: Sequence[Branch]) -> Attribute:
    if declared.lo is not None and declared.hi is not None:
        interval = Interval(declared.lo, declared.hi, declared.step)
        places = places_of(interval, np.zeros(0))
        return numbers(declared.name, places, branches=branches, missing=True)
    order = declared.categories or [branch[0] for branch in branches]
    _check_meanings([value for value in order if value != declared.missing])
    return categories(declared.name, order, branches=branches, marker=declared.missing)


def _check_meanings(values: Sequence[str]) -> None:
    """Raise `ValueError` if a declared value is none, or two are one: d and l count values."""
    plain = [plain_form(value) for value in values]
    missing = missing_words(plain, NO_VALUE)
    means = Reading.of(plain, [1] * len(plain)).means
    known: dict[Hashable, str] = {}
    for value, text in zip(values, plain, strict=True):
        if text in missing:
            raise ValueError(
                f"values: {value!r} means that there is no value, which d and l do not count: "
                "leave it out, it is read as missing"
            )
        other = known.setdefault(means(text), value)
        if other != value:
            raise ValueError(
                f"values: {other!r} and {value!r} mean the same, and d and l count meanings: "
                "declare one of them, the other is read as it"
            )


def _in_schema(attribute: Attribute, bands: Sequence[float]) -> tuple[Attribute, Int32Array]:
    """Return a sensitive attribute as the schema has it, and its code there for each code."""
    if bands:
        return in_bands(attribute, bands)
    return attribute, np.arange(attribute.size, dtype=np.int32)


def _check_feasible(
    settings: StreamSettings, attributes: Sequence[Attribute], least: int, name: str
) -> None:
    """Refuse a promise of more values than the domain of an attribute has, unless it is open."""
    is_open = {a.name for a in settings.attributes if a.is_open}
    for attribute in attributes:
        if attribute.name in is_open:
            continue
        n_values = attribute.size - (attribute.missing != NO_CODE)
        if n_values < least:
            raise _settings_error(
                settings,
                f"promise.{name}: {attribute.name} has {n_values} values, {name} = {least}",
            )


def _settings_error(settings: StreamSettings, problem: str) -> SettingsError:
    return SettingsError(f"streams: {settings.name}: {problem}")


def _shape(settings: StreamSettings, of: Mapping[str, Attribute]) -> str:
    """Return a digest of everything that gives codes, columns and windows their meaning."""
    return _digest(
        [
            (settings.window_s, settings.begin_s, settings.utc_offset_h, settings.per),
            [(s.name, s.tells) for s in settings.sources],
            [(a.name, a.role) for a in settings.attributes if a.lasting],
            _codes(settings, of, of),
        ]
    )


def _histories(settings: StreamSettings, of: Mapping[str, Attribute]) -> str:
    """Return a digest of what gives the histories of vehicles their meaning."""
    roles = [(a.name, a.role) for a in settings.attributes if a.lasting]
    windows = settings.window_s, settings.begin_s, settings.utc_offset_h
    meaning = [windows, roles, _codes(settings, of, [name for name, _ in roles])]
    return _digest(meaning) if roles else ""


def _codes(
    settings: StreamSettings, of: Mapping[str, Attribute], names: Iterable[str]
) -> list[tuple[object, ...]]:
    """Return what the codes of some attributes mean."""
    is_open = {a.name for a in settings.attributes if a.is_open}
    return [
        (name, a.label, a.missing, (a.size, float(a.position[0]), float(a.position[-1])))
        if name not in is_open
        else (name, "any")
        for name in names
        for a in [of[name]]
    ]


def _digest(meaning: Sequence[object]) -> str:
    return hashlib.blake2b(repr(meaning).encode(), digest_size=16).hexdigest()
