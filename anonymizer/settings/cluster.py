"""`[cluster]`: positions and records on Apache Kafka, as bridges and workers."""

from pathlib import Path
from typing import Annotated

from pydantic import Field

from anonymizer.settings.base import Group, Positive


class ClusterSettings(Group):
    """What `anonymizer bridge` and `anonymizer worker` must agree on.

    Where Kafka is, and what its topics are called, is in `[kafka]`. `anonymizer serve` does not use
    this. All bridges and workers of a cluster need the same settings.
    """

    n_parts: Annotated[int, Field(ge=1, le=1024)] = 4
    """Number of sources, parts of the devices that are located independently; of joiners, parts of
    the vehicles whose records are joined independently; and of ranges, parts of a closed window
    that are anonymized at the same time. It must not change while there is anything in the
    topics."""
    records_per_range: Annotated[int, Field(ge=100, le=1_000_000)] = 50_000
    """About how many records of a window one range takes. A larger window is divided by a sample
    into several ranges, which form classes separately; only records that find no class, and classes
    at the borders, are put together once more. A worker forms the classes of a range in one go,
    which must take less than 240 s, or twice the longest `budget_s` of a search; its other stages
    wait meanwhile."""
    wait_s: Positive = 5.0
    """How long a tick waits for a bridge or a source that has fallen silent, in seconds."""
    secret_file: Path | None = None
    """A file with at least 32 random bytes that others may not read, the same for all workers.
    Pseudonyms are made with it. None: workers do not start."""
