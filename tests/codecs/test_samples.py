"""Samples of every format: what is decoded, what is refused, and for which reason."""

import json
from collections.abc import Iterable

import pytest
from msgspec import structs

from anonymizer.codecs import CODECS
from anonymizer.domain.fixes import Fix
from anonymizer.domain.outcomes import Outcome
from tests.codecs.hostile import paths, with_part
from tests.codecs.sample import Sample, plain
from tests.codecs.samples import SAMPLES


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda s: f"{s.codec}: {s.about}")
def test_each_message_yields_its_fixes_or_the_reason_for_refusal(sample: Sample) -> None:
    assert plain(CODECS[sample.codec](sample.payload)) == sample.expected


def test_every_codec_has_accepted_and_refused_samples() -> None:
    assert {s.codec for s in SAMPLES if isinstance(s.expected[0], Fix)} == set(CODECS)
    assert {s.codec for s in SAMPLES if isinstance(s.expected[0], Outcome)} == set(CODECS)


NUMBERS = frozenset({
    "lat", "lon", "long", "lng", "latitude", "longitude", "latitude_i", "longitude_i",
    "latitudeDeg", "longitudeDeg", "ts", "tst", "tsi", "time", "timestamp", "fixTime", "fixtime",
    "accuracy_m", "acc", "accuracy", "gps_accuracy",
})  # fmt: skip
"""Members that state a place, a time, or an accuracy; readings of any name are numbers alone."""


def located(found: Iterable[Fix | Outcome]) -> list[Fix | Outcome]:
    """Return what was decoded without readings: what of them is a number is left to each format."""
    return [
        structs.replace(each, readings=None) if isinstance(each, Fix) else each
        for each in plain(found)
    ]


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda s: f"{s.codec}: {s.about}")
def test_what_a_format_reads_as_a_number_it_reads_as_text(sample: Sample) -> None:
    read = located(CODECS[sample.codec](sample.payload))
    for path in paths(sample.message):
        stated = sample.message
        for key in path:
            stated = stated[key]
        is_number = type(stated) in {int, float} and stated < 1e300
        if path and path[-1] in NUMBERS and "readings" not in path and is_number:
            spelled = json.dumps(with_part(sample.message, path, json.dumps(stated))).encode()
            assert located(CODECS[sample.codec](spelled)) == read, path
