"""A new codec is one file: settings, suites and benchmarks take it by its name."""

import subprocess
import sys
from pathlib import Path

import pytest

from anonymizer.codecs import CODECS, FORMATS, MODULES
from anonymizer.domain.fixes import Fix
from anonymizer.settings import InputSettings
from tests.codecs.samples import TYPICAL, lat_lon

NEW = "tests.codecs.lat_lon"
ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("codec", CODECS)
def test_settings_take_a_codec_and_what_it_says_of_its_format(codec: str) -> None:
    asked = InputSettings.model_validate({"codec": codec})
    assert isinstance(asked.make_codec()(TYPICAL[codec](60.5, 24.5))[0], Fix)
    assert asked.oldest_s(0.0, ttl_s=1e9) == FORMATS[codec].oldest_s
    unpacking = {"codec": codec, "unpack": "cbor"}
    if FORMATS[codec].is_json:
        InputSettings.model_validate(unpacking)
    else:
        with pytest.raises(ValueError, match="stand for JSON"):
            InputSettings.model_validate(unpacking)
    echoing = {"codec": codec, "echo": "echo/{pseudonym}"}
    if FORMATS[codec].encode is None:
        with pytest.raises(ValueError, match="messages of this codec cannot be written"):
            InputSettings.model_validate(echoing)
    else:
        assert InputSettings.model_validate(echoing).make_encoder() is FORMATS[codec].encode


@pytest.mark.skipif(NEW in MODULES, reason="it runs here")
def test_a_new_codec_is_one_file() -> None:
    """These tests and those of all codecs of an exercise, in a process that has it besides."""
    files = ["test_a_new_codec.py", "test_samples.py", "test_hostile.py"]
    paths = [*(f"tests/codecs/{each}" for each in files), "tests/benchmarks/test_quick.py"]
    program = (
        "import sys, pytest\nfrom anonymizer.codecs import MODULES\n"
        f"MODULES.append({NEW!r})\n"
        "sys.exit(pytest.main(['-v', '-n0', '-p', 'no:cacheprovider', '-k', 'lat_lon',"
        f" *{paths!r}]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-3000:]
    n_of_samples = 2 * len(lat_lon.samples())
    n_of_files = 3  # settings, an empty message, and the benchmarks
    assert f"{n_of_samples + n_of_files} passed" in done.stdout
