"""Privacy gateway for moving devices: raw positions and records in, k-anonymous data out.

The names below are public, in addition to the command line and the formats; docs/api.md has the
versioning policy. Everything else may change in any release. A name is imported when it is first
used: `import anonymizer` loads nothing but this file.
"""

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from anonymizer.api.anonymizing import AnonymizedTable, AnonymizeReport, anonymize
    from anonymizer.api.auditing import TableAuditReport, audit_table
    from anonymizer.api.cloaking import (
        AuditReport,
        CloakedTrace,
        CloakReport,
        Finding,
        audit_stream,
        cloak,
    )
    from anonymizer.api.profiling import ProfileReport, profile
    from anonymizer.domain.network import RoadNetwork
    from anonymizer.errors import (
        AnonymizerError,
        GuaranteeError,
        InputError,
        SettingsError,
        TransportError,
    )
    from anonymizer.estimators import Anonymizer, Minimizer
    from anonymizer.networks import from_networkx, load_network, to_networkx
    from anonymizer.settings import Settings, load_settings

__all__ = [
    "AnonymizeReport",
    "AnonymizedTable",
    "Anonymizer",
    "AnonymizerError",
    "AuditReport",
    "CloakReport",
    "CloakedTrace",
    "Finding",
    "GuaranteeError",
    "InputError",
    "Minimizer",
    "ProfileReport",
    "RoadNetwork",
    "Settings",
    "SettingsError",
    "TableAuditReport",
    "TransportError",
    "__version__",
    "anonymize",
    "audit_stream",
    "audit_table",
    "cloak",
    "from_networkx",
    "load_network",
    "load_settings",
    "profile",
    "to_networkx",
]

_MODULE_OF = {
    name: module
    for module, names in {
        "anonymizer.api.anonymizing": ("AnonymizeReport", "AnonymizedTable", "anonymize"),
        "anonymizer.api.auditing": ("TableAuditReport", "audit_table"),
        "anonymizer.api.profiling": ("ProfileReport", "profile"),
        "anonymizer.api.cloaking": (
            "AuditReport", "CloakReport", "CloakedTrace", "Finding", "audit_stream", "cloak",
        ),
        "anonymizer.domain.network": ("RoadNetwork",),
        "anonymizer.errors": (
            "AnonymizerError", "GuaranteeError", "InputError", "SettingsError", "TransportError",
        ),
        "anonymizer.estimators": ("Anonymizer", "Minimizer"),
        "anonymizer.networks": ("from_networkx", "load_network", "to_networkx"),
        "anonymizer.settings": ("Settings", "load_settings"),
    }.items()
    for name in names
}  # fmt: skip
"""The module from which each public name is imported."""


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_MODULE_OF[name]), name)
    globals()[name] = value  # the next access does not come here
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
