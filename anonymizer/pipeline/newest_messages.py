"""The newest message of each topic: what remains of a backlog when older ones are dropped."""

from collections.abc import Callable, Sequence

import numpy as np

from anonymizer.domain.arrays import IntArray
from anonymizer.pipeline.name_hashes import hash_of
from anonymizer.pipeline.packed_deliveries import ROW_BYTES, PackedDeliveries


def newest_of_each_topic(
    batches: Sequence[PackedDeliveries],
    *,
    is_shared: Callable[[str], bool] | None,
    most: int,
    max_bytes: int,
) -> list[PackedDeliveries]:
    """Return what is left of each batch if every message yields to a newer one of its topic.

    Parameters
    ----------
    batches
        Messages in order of arrival.
    is_shared
        Whether several devices may send on a topic: then its messages yield to none. None: each
        topic is that of one device.
    most, max_bytes
        At most so many messages stay, the newest, and of them at most so many bytes.

    Notes
    -----
    A retained message may be older than a live one that arrived before it, so it yields to any.
    O(n log n).
    """
    key = np.concatenate([_topic_hash(batch) for batch in batches])
    retained = np.concatenate([batch.columns.retained for batch in batches])
    first = np.cumsum([0, *map(len, batches)])
    for batch, start in zip(batches if is_shared else (), first.tolist(), strict=False):
        unlike = [i for i, row in enumerate(batch, start) if is_shared and is_shared(row.topic)]
        key[unlike] = -1 - np.array(unlike, np.int64)
    # In order of precedence: live ones, the newest first, then retained ones, the oldest first.
    rank = np.concatenate([np.flatnonzero(~retained)[::-1], np.flatnonzero(retained)])
    _, at = np.unique(key[rank], return_index=True)
    left = np.sort(rank[at])[-most:]
    bounds = np.concatenate([batch.columns.bounds for batch in batches])[left].astype(np.int64)
    size = bounds[:, 1] - bounds[:, 0] + bounds[:, 3] - bounds[:, 2] + ROW_BYTES
    left = left[np.cumsum(size[::-1])[::-1] <= max_bytes]
    cut = np.searchsorted(left, first)
    return [
        batch.only(left[a:b] - start)
        for batch, start, a, b in zip(batches, first[:-1], cut[:-1], cut[1:], strict=True)
    ]


def _topic_hash(batch: PackedDeliveries) -> IntArray:
    return hash_of(np.frombuffer(batch.stream, np.uint8), batch.columns.bounds)
