"""The samples of formats in the projects' own repositories, decoded: a table of what is accepted.

`python -m tests.other_readers.samples FOLDER`, where FOLDER/OWNER+NAME/repo is a clone of each
repository of `SOURCES`, with or without its work tree. Prints the table of notes/samples.md.
Nothing of the samples is kept.
"""

import json
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from anonymizer.codecs import CODECS, Codec
from anonymizer.codecs.any_json import codec_of
from anonymizer.domain.fixes import Fix
from anonymizer.domain.outcomes import Outcome
from anonymizer.pipeline.ledger import label_of
from anonymizer.settings import Settings
from tests.console import ROOT, blocks

_TYPE = re.compile(r"\.(json|jsonld|geojson|jsonl|md|mdx|html|rec|go|py|rs|java|js|ts|yaml|yml)$")


class Source(NamedTuple):
    """Samples of one format.

    Attributes
    ----------
    format, codec
        Its name, and the codec; `json` is set up as on the page of formats, where the settings
        contain `paths`.
    repository, folder
        OWNER/NAME, and what the paths of its files match.
    keys
        All of them are in a message, at any depth, as a key or as a text.
    """

    format: str
    codec: str
    repository: str
    folder: str
    keys: tuple[str, ...]
    paths: str = ""


SOURCES = (
    Source("SAE J2735 BSM", "j2735", "usdot-jpo-ode/jpo-ode", "bsm|BSM", ("coreData",)),
    Source("SAE J2735 BSM", "j2735", "usdot-jpo-ode/jpo-cvdp", "data/", ("coreData",)),
    Source("ETSI CAM", "etsi_cam", "nap-it/vanetza-nap", "cam|README", ("generationDeltaTime",)),
    Source("ETSI CAM", "etsi_cam", "Orange-OpenSource/its-client", "README|exchange|Data/Cam",
           ("generation_delta_time",)),
    Source("OwnTracks", "owntracks", "owntracks/booklet", "docs/", ("_type", "location")),
    Source("OwnTracks", "owntracks", "owntracks/recorder", "", ("_type", "location")),
    Source("NGSI-LD", "ngsi_ld", "smart-data-models/dataModel.Transportation",
           "(Vehicle|FleetVehicleStatus)/examples/", ("location",)),
    Source("Meshtastic", "meshtastic", "meshtastic/meshtastic", "mqtt/", ("payload", "from")),
    Source("Traccar", "traccar", "traccar/traccar", "", ("deviceId", "latitude", "protocol")),
    Source("VSS", "json", "COVESA/vehicle-information-service-specification", "spec/",
           ("Vehicle.CurrentLocation.Latitude", "dp"), "dp.value"),
    Source("Tesla fleet telemetry", "json", "teslamotors/fleet-telemetry", "", ("locationValue",),
           "locationValue"),
    Source("rFMS", "json", "way-platform/rfms-go", "test", ("gnssPosition",), "gnssPosition"),
)  # fmt: skip
_NO_SAMPLES = re.compile("schema|openapi")
"""Files that describe messages and hold none."""


def reader_of(source: Source) -> Codec:
    """Return the codec of a source."""
    if source.codec != "json":
        return CODECS[source.codec]
    for block in blocks(ROOT / "docs" / "formats.md"):
        if (
            block.language == "toml"
            and "[inputs.payload]" in block.text
            and source.paths in block.text
        ):
            [one] = Settings.model_validate(tomllib.loads(block.text)).inputs
            assert one.payload is not None
            return codec_of(one.payload.paths)
    raise AssertionError(source.paths)


def texts(folder: Path, source: Source) -> Iterator[tuple[str, str]]:
    """Yield path and text of each file that may have samples."""
    git = ["git", "-C", str(folder / source.repository.replace("/", "+") / "repo")]
    listed = subprocess.run(
        [*git, "ls-tree", "-r", "--name-only", "HEAD"], capture_output=True, text=True, check=True
    )
    for path in listed.stdout.splitlines():
        if _TYPE.search(path) and re.search(source.folder, path) and not _NO_SAMPLES.search(path):
            shown = subprocess.run([*git, "show", f"HEAD:{path}"], capture_output=True, check=False)
            if not shown.returncode:
                yield path, shown.stdout.decode(errors="replace")


def words(value: Any) -> Iterator[str]:  # noqa: ANN401  any JSON
    """Yield the keys and texts in a value."""
    if isinstance(value, dict):
        for key, inside in value.items():
            yield key
            yield from words(inside)
    elif isinstance(value, list):
        for inside in value:
            yield from words(inside)
    elif isinstance(value, str):
        yield value


def objects(text: str) -> Iterator[Any]:
    """Yield the JSON objects and arrays of objects in a text, the outermost ones."""
    decoder, at = json.JSONDecoder(), 0
    while (found := re.compile(r"[{\[]\s*[\"{]").search(text, at)) is not None:
        try:
            value, at = decoder.raw_decode(text, found.start())
        except ValueError:
            at = found.start() + 1
        else:
            yield value


def messages(text: str, source: Source) -> Iterator[Any]:
    """Yield the messages of a format in a text; also those that a program has as its text."""
    for plain in (text, text.replace('\\"', '"')):
        found = [each for each in objects(plain) if set(source.keys) <= set(words(each))]
        if found:
            yield from found
            return


def row(source: Source, path: str, found: Sequence[Any], decode: Codec) -> tuple[str, int]:
    """Return what became of the messages in a file, a row of the table, and how many are read."""
    refused: Counter[str] = Counter()
    for message in found:
        outcomes = list(decode(json.dumps(message).encode()))
        if not any(isinstance(each, Fix) for each in outcomes):
            refused[label_of(next(each for each in outcomes if isinstance(each, Outcome)))] += 1
    why = ", ".join(f"{n} {label}" for label, n in refused.items())
    n_accepted = len(found) - refused.total()
    cells = (source.format, source.repository, f"`{path}`", len(found), n_accepted, why)
    return f"| {' | '.join(map(str, cells))} |", n_accepted


def main(folder: Path) -> None:
    """Print a table of the samples."""
    rows = [
        "| format | repository | file | messages | accepted | refused |",
        "|---|---|---|--:|--:|---|",
    ]
    n_all = n_read = 0
    for source in SOURCES:
        decode, n = reader_of(source), 0
        for path, text in texts(folder, source):
            found = list(messages(text, source))
            if found:
                line, n_accepted = row(source, path, found, decode)
                rows.append(line)
                n, n_all, n_read = n + 1, n_all + len(found), n_read + n_accepted
        if not n:
            rows.append(f"| {source.format} | {source.repository} | none found | 0 | 0 | |")
    rows.append(f"| all | | | {n_all} | {n_read} | |")
    sys.stdout.write("\n".join(rows) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
