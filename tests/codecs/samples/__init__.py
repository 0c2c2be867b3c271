"""Short messages of every format, a file for each codec, with the expected result of each.

A file has `samples()`, short messages and what each yields; `typical`, which writes one of usual
length; and, where the codec has no writer or needs another one in tests, `stated`, which writes
what a device states.
"""

from importlib import import_module
from typing import Any

from anonymizer.codecs import CODECS, Encoder, encoders
from tests.codecs.sample import Sample, Writer

_FILES: dict[str, Any] = {name: import_module(f"{__name__}.{name}") for name in CODECS}
SAMPLES = [Sample(name, *each) for name, file in _FILES.items() for each in file.samples()]
TYPICAL: dict[str, Writer] = {name: file.typical for name, file in _FILES.items()}
STATED: dict[str, Encoder] = encoders() | {
    name: file.stated for name, file in _FILES.items() if hasattr(file, "stated")
}
"""By the names of codecs."""
