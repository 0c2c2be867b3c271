"""Settings of a session that a test need not wait for."""

from typing import ClassVar

from anonymizer.settings import SessionSettings


class EagerSession(SessionSettings):
    """Groups are formed in the first tick, and all end together."""

    n_cells: ClassVar[int] = 1

    @property
    def settle_s(self) -> float:
        """How long after the first position the first groups are formed."""
        return 0.0
