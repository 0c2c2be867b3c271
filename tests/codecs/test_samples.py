"""Samples of every format: what is decoded, what is refused, and for which reason."""

import pytest

from anonymizer.codecs import CODECS
from anonymizer.domain.fixes import Fix
from anonymizer.domain.outcomes import Outcome
from tests.codecs.samples import SAMPLES, Sample, plain


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda s: f"{s.codec}: {s.about}")
def test_each_message_yields_its_fixes_or_the_reason_for_refusal(sample: Sample) -> None:
    assert plain(CODECS[sample.codec](sample.payload)) == sample.expected


def test_every_codec_has_accepted_and_refused_samples() -> None:
    formats = set(CODECS) - {"gtfs_rt", "msgpack"}  # binary: in files of their own
    assert {s.codec for s in SAMPLES if isinstance(s.expected[0], Fix)} == formats
    assert {s.codec for s in SAMPLES if isinstance(s.expected[0], Outcome)} == formats
