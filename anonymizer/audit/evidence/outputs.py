"""What a gateway publishes by its settings, what each output promises, and what is kept."""

from collections.abc import Iterator

from anonymizer.domain.criteria.registry import CRITERIA
from anonymizer.domain.promises import Promise
from anonymizer.outputs.promised import Promised
from anonymizer.outputs.registry import asked_for, copies_asked_for
from anonymizer.settings import ReadingSettings, Settings, StreamSettings


def outputs_of(settings: Settings) -> list[Promised]:
    """Return all outputs that the settings switch on."""
    found = [*_positions(settings), *_fixed(settings), *_besides(settings)]
    found += [_stream(each) for each in settings.streams]
    if settings.http.enabled:
        raw = "true positions are shown to whoever has the token" if settings.http.raw_view else ""
        shown = "nothing but what is published, and counts in steps of k, one interval late"
        found.append(Promised("live map, metrics and API", "HTTP", shown, raw))
    return found


def kept(settings: Settings) -> dict[str, str]:
    """Return how long the gateway keeps what, in words."""
    found = {}
    if settings.inputs:
        ttl, waits = settings.presence.ttl_s, settings.trips.latency_s
        found["true positions"] = (
            f"in memory, the last of each device for {ttl:g} s (more where devices report rarely)"
            + (f", and all for {waits:g} s while trip ends are protected" if waits else "")
        )
        for output in asked_for(settings):
            found |= output.kept(settings)
        if settings.watch.evidence_s:
            found["traffic for attacks"] = (
                f"in memory for {settings.watch.evidence_s:g} s, by device key and node"
            )
        lasts = f"{settings.session.rotate_s:g} s"
        if settings.region.mode == "session":
            lasts = f"{settings.session.epoch_s:g} s (more where devices report rarely)"
        found["a pseudonym"] = f"at most {lasts}; its key is in memory alone, new at every start"
    if any(each.kind != "mobile" for each in settings.inputs):
        found["readings of fixed devices"] = f"in memory for {settings.fixed.ttl_s:g} s"
    if settings.broker.session_expiry_s:
        queued = settings.broker.session_expiry_s
        found["raw messages at the broker"] = f"up to {queued:,} s while the gateway is away"
    for each in settings.streams:
        waits = each.window_s + each.lateness_s
        found[f"records of `{each.name}`"] = (
            f"on disk until their window closes, about {waits:g} s; then erased"
        )
    if settings.streams:
        days = settings.store.keep_published_s / 86_400
        found["published classes"] = f"on disk for {days:g} days, for queries"
    return found


def _k_of(settings: Settings) -> str:
    values = {max(settings.adka.k_floor, k) for k in settings.adka.k_values}
    least, most = min(values), max(values)
    if least == most:
        return f"k is {least}"
    return f"k is {least} to {most}, the larger the fewer devices are near"


def _positions(settings: Settings) -> Iterator[Promised]:
    if all(each.kind != "mobile" for each in settings.inputs):
        return
    region, k = settings.region, _k_of(settings)
    where = f"`{settings.output.kafka or settings.output.topic}`"
    size = f"a region has at least {region.min_nodes} road junctions"
    if region.min_road_m:
        size += f" and {region.min_road_m:g} m of road"
    own = (
        f"more than {region.k_extra} devices of the adversary's own"
        if region.k_extra
        else ("devices of the adversary's own")
    )
    promise, but = {
        "adka": (
            f"each region holds at least k devices; {k}",
            "anything against somebody who knows the algorithm: regions tell who published",
        ),
        "snapshot": (
            f"at each instant at least k devices publish the identical region; {k}; {size}",
            f"that regions of a pseudonym cannot be intersected over time; {own}",
        ),
        "session": (
            f"at least k pseudonyms share the whole life of each; {k}; {size}",
            f"protection against days of profiling; {own}",
        ),
    }[region.mode]
    but += "; how little is learned of *where* a device is (measured by the audit)"
    yield Promised(
        f"positions of mobile devices, mode `{region.mode}`", where, promise, but, "positions"
    )
    copies = (each for of in copies_asked_for(settings) for each in of.channels(settings))
    forms = [f"`{each.address}`" for each in copies if not each.retained]
    forms += [f"`{settings.topics.current}`"] if settings.current.every_s else []
    if forms:
        yield Promised(
            "the same positions in other forms", ", ".join(forms), "the same", "the same"
        )
    for each in settings.readings:
        yield _reading(each, where)


def _reading(reading: ReadingSettings, where: str) -> Promised:
    alone = [each for each in reading.statistics if each in {"min", "max"}]
    but = f"{' and '.join(alone)}: each is the value of one device" if alone else ""
    if reading.per_pseudonym:
        but = "each device's own value is published with its pseudonym: can undo the anonymity"
    statistics = ", ".join(reading.statistics)
    promise = f"{statistics} of a group: at least k values behind each"
    return Promised(f"reading `{reading.name}`", where, promise, but)


def _fixed(settings: Settings) -> Iterator[Promised]:
    kinds = {each.kind for each in settings.inputs}
    if "fixed" in kinds:
        yield Promised(
            "positions of fixed devices",
            f"`{settings.topics.fixed}`",
            f"as of mobile ones in mode `{settings.region.mode}`, among fixed devices",
            "that the place of a device which never moves stays unknown",
        )
    if "public" in kinds:
        yield Promised(
            "fixed devices as they are",
            f"`{settings.topics.public}`",
            "none",
            "anything: id, exact position and readings are public",
        )


def _besides(settings: Settings) -> Iterator[Promised]:
    for output in asked_for(settings):
        yield from output.promises(settings)
    if settings.inputs and settings.output.kafka is None:
        yield Promised(
            "counts of rejected positions, by reason",
            f"`{settings.topics.rejected}`",
            "in steps of k, one interval late",
            "",
        )


def _criteria(promise: Promise) -> Iterator[str]:
    for each in CRITERIA:
        bound = getattr(promise, each.name)
        for name, x in bound.items() if each.per_attribute else [("", bound)]:
            if each.promised and each.is_asked(x):
                yield each.promised.format(x, f"`{name}`")


def _stream(stream: StreamSettings) -> Promised:
    promise = stream.promise
    parts = [f"at least {promise.k + promise.k_extra} vehicles in each class"]
    parts += _criteria(promise.promise)
    lasting = ", ".join(f"`{each.name}`" for each in stream.attributes if each.lasting)
    if lasting and stream.enforces:
        parts.append(f"windows together keep it for {lasting}")
    but = []
    if stream.unprotected:
        but.append(f"windows together: they can tell {lasting} of a vehicle")
    if not promise.bounds_sensitive and any(a.role == "sensitive" for a in stream.attributes):
        but.append("that the sensitive values of a class differ")
    if means := [f"`{each.name}`" for each in stream.attributes if each.role == "measure"]:
        but.append(f"that sum and mean of {', '.join(means)} hide a value that stands out")
    return Promised(
        f"records of `{stream.name}`, model `{stream.model}`",
        f"`{stream.output_topic}`",
        ", ".join(parts),
        "; ".join(but),
        "records",
        stream.name,
    )
