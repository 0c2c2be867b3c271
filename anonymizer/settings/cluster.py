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
    """Number of sources, parts of the devices that are located independently, and of the partitions
    that streams of records share, each of which is the work of one worker. It must not change while
    there is anything in the topics."""
    wait_s: Positive = 5.0
    """How long a tick waits for a bridge or a source that has fallen silent, in seconds."""
    secret_file: Path | None = None
    """A file with at least 32 random bytes that others may not read, the same for all workers.
    Pseudonyms are made with it. None: workers do not start."""
