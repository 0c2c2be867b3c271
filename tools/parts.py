"""List of all parts of the gateway's image, as CycloneDX: `python -m tools.parts OUT.json`.

They are the packages that requirements.txt pins, with the licences that the installed ones state,
and what lies in `vendor` folders. Equal files and $SOURCE_DATE_EPOCH give equal bytes. Python and
the packages of its system are the base image's: they are not in the list.
"""

import os
import re
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from uuid import NAMESPACE_OID, uuid5

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model.bom import Bom, BomMetaData
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL

from anonymizer import __version__
from anonymizer.extras import DISTRIBUTION
from tools.dependencies import ROOT, licence_of, pins

_LOCK = ROOT / "requirements.txt"
_VENDORED = {"leaflet": ("BSD-2-Clause", re.compile(r"Leaflet ([\d.]+),"))}
"""Licence of each folder below `vendor`, and what its code says of its version."""


def parts() -> Iterator[Component]:
    """Yield all parts that are installed here, in the order of the lock.

    Raises
    ------
    KeyError
        If nothing is said here about a folder below `vendor`.
    """
    for name, version in pins(_LOCK.read_text()):
        try:
            package = distribution(name)
        except PackageNotFoundError:
            continue  # for another platform
        if package.version == version:
            yield _part(name, version, " OR ".join(licence_of(package)), kind="pypi")
    for folder in sorted((ROOT / "anonymizer").rglob("vendor/*")):
        licence, stated = _VENDORED[folder.name]
        [version] = {v for file in folder.glob("*.js") for v in stated.findall(file.read_text())}
        yield _part(folder.name, version, licence, kind="npm")


def _part(name: str, version: str, licence: str, *, kind: str) -> Component:
    return Component(
        name=name,
        version=version,
        type=ComponentType.LIBRARY,
        bom_ref=f"{name}=={version}",
        purl=PackageURL(kind, name=name, version=version),
        licenses=[LicenseFactory().make_from_string(licence)],
    )


def listed(made_at: datetime) -> str:
    """Return the list as JSON that its schema accepts.

    Raises
    ------
    ValueError
        If the schema refuses it, with what it says.
    """
    whole = Component(
        name=DISTRIBUTION,
        version=__version__,
        type=ComponentType.APPLICATION,
        bom_ref=DISTRIBUTION,
        licenses=[LicenseFactory().make_from_string("Apache-2.0")],
    )
    lock = sha256(_LOCK.read_bytes()).hexdigest()
    bom = Bom(
        components=parts(),
        serial_number=uuid5(NAMESPACE_OID, f"{DISTRIBUTION} {__version__} {lock}"),
        metadata=BomMetaData(component=whole, timestamp=made_at),
    )
    bom.register_dependency(whole, bom.components)
    text = JsonV1Dot6(bom).output_as_string(indent=1)
    if wrong := JsonStrictValidator(SchemaVersion.V1_6).validate_str(text):
        raise ValueError(str(wrong))
    return text


def main() -> None:
    """Write the list, of the moment that $SOURCE_DATE_EPOCH states."""
    [out] = sys.argv[1:]
    made_at = datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), UTC)
    Path(out).write_text(f"{listed(made_at)}\n")


if __name__ == "__main__":
    main()
