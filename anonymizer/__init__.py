"""Privacy gateway for moving devices: raw positions and records in, k-anonymous data out.

The names below are public, in addition to the command line and the formats; docs/api.md has the
versioning policy. Everything else may change in any release. A name is imported when it is first
used: `import anonymizer` loads no library.
"""

from typing import TYPE_CHECKING

from anonymizer.first_use import on_first_use

__version__ = "0.1.0"

if TYPE_CHECKING:
    from anonymizer.api.anonymizing import AnonymizedTable as AnonymizedTable
    from anonymizer.api.anonymizing import anonymize as anonymize
    from anonymizer.api.auditing import TableAuditReport as TableAuditReport
    from anonymizer.api.auditing import audit_table as audit_table
    from anonymizer.api.cloaking import AuditReport as AuditReport
    from anonymizer.api.cloaking import CloakedTrace as CloakedTrace
    from anonymizer.api.cloaking import CloakReport as CloakReport
    from anonymizer.api.cloaking import Finding as Finding
    from anonymizer.api.cloaking import audit_stream as audit_stream
    from anonymizer.api.cloaking import cloak as cloak
    from anonymizer.api.profiling import ProfileReport as ProfileReport
    from anonymizer.api.profiling import profile as profile
    from anonymizer.app.anonymize.release_report import AnonymizeReport as AnonymizeReport
    from anonymizer.domain.network import RoadNetwork as RoadNetwork
    from anonymizer.errors import AnonymizerError as AnonymizerError
    from anonymizer.errors import GuaranteeError as GuaranteeError
    from anonymizer.errors import InputError as InputError
    from anonymizer.errors import SettingsError as SettingsError
    from anonymizer.errors import TransportError as TransportError
    from anonymizer.estimators import Anonymizer as Anonymizer
    from anonymizer.estimators import Minimizer as Minimizer
    from anonymizer.networks import from_networkx as from_networkx
    from anonymizer.networks import load_network as load_network
    from anonymizer.networks import to_networkx as to_networkx
    from anonymizer.settings import Settings as Settings
    from anonymizer.settings import load_settings as load_settings

_NAMES_OF = {
    "api.anonymizing": ("AnonymizedTable", "anonymize"),
    "api.auditing": ("TableAuditReport", "audit_table"),
    "api.profiling": ("ProfileReport", "profile"),
    "api.cloaking": (
        "AuditReport", "CloakReport", "CloakedTrace", "Finding", "audit_stream", "cloak",
    ),
    "app.anonymize.release_report": ("AnonymizeReport",),
    "domain.network": ("RoadNetwork",),
    "errors": (
        "AnonymizerError", "GuaranteeError", "InputError", "SettingsError", "TransportError",
    ),
    "estimators": ("Anonymizer", "Minimizer"),
    "networks": ("from_networkx", "load_network", "to_networkx"),
    "settings": ("Settings", "load_settings"),
}  # fmt: skip
"""The public names of each module."""
__getattr__ = on_first_use(__name__, _NAMES_OF)
__all__: list[str] = ["__version__"]
__all__ += [name for names in _NAMES_OF.values() for name in names]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
