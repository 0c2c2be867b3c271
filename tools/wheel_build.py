"""What hatchling asks when it builds a wheel: whether machine code is to be in it."""

import os
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class MachineCode(BuildHookInterface[Any]):
    """Takes the folder that $ANONYMIZER_MACHINE_CODE names into the wheel, see `make wheel`."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add to what is built."""
        folder = os.environ.get("ANONYMIZER_MACHINE_CODE")
        if folder and version == "standard":
            build_data["force_include"][folder] = "anonymizer/machine_code"
