"""The outputs and copies that a gateway can have."""

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING

from anonymizer.outputs.output import Output

if TYPE_CHECKING:
    from anonymizer.outputs.copies import Copy
    from anonymizer.settings import Settings

OUTPUTS: dict[str, Callable[["Settings"], bool]] = {
    "anonymizer.outputs.counts": lambda settings: settings.counts.enabled,
    "anonymizer.outputs.trips": lambda settings: settings.trips_out.every_s > 0,
    "anonymizer.outputs.streets": lambda settings: settings.counts.streets_s > 0,
}
"""Whether settings ask for the output of each module, which is imported if they do."""


def asked_for(settings: "Settings") -> list[type[Output]]:
    """Return the outputs that settings ask for."""
    if not settings.inputs:  # nobody is there to be told of
        return []
    return [output_in(module) for module, is_on in OUTPUTS.items() if is_on(settings)]


def output_in(module: str) -> type[Output]:
    """Return the output of a module."""
    found: type[Output] = import_module(module).OUTPUT
    return found


COPIES: dict[str, Callable[["Settings"], bool]] = {
    "anonymizer.outputs.echoes": lambda settings: bool(settings.echoes),
    "anonymizer.outputs.entities": lambda settings: "ngsi_ld" in settings.output.forms,
    "anonymizer.outputs.late_density": lambda settings: "density" in settings.output.forms,
}
"""Whether settings ask for the copies of each module, which is imported if they do."""


def copies_asked_for(settings: "Settings") -> "list[type[Copy]]":
    """Return the kinds of copies that settings ask for."""
    found: list[type[Copy]] = [
        import_module(module).COPY for module, is_on in COPIES.items() if is_on(settings)
    ]
    return found
