"""Window models by name."""

import hashlib
from collections.abc import Callable, Mapping

from anonymizer.algorithms.models.model import MadeOf
from anonymizer.algorithms.models.registry import MODELS
from anonymizer.pipeline.records.cells_model import DecisionTree
from anonymizer.pipeline.records.declaration import Stream
from anonymizer.pipeline.records.kaca_model import Clustering
from anonymizer.pipeline.records.window_model import WindowModel

_BY_FORM = {
    MadeOf.STRETCHES: WindowModel,
    MadeOf.CLUSTERS: Clustering,
    MadeOf.CELLS: DecisionTree,
}
WINDOW_MODELS: Mapping[str, Callable[[Stream], WindowModel]] = {
    name: _BY_FORM[model.formed] for name, model in MODELS.items()
}
"""By the name of the model in the settings."""


def seed_of(secret: bytes, stream: str, window: int) -> int:
    """Return the seed of a window: secret, and the same at every attempt."""
    name = f"{stream}\0{window}".encode()
    return int.from_bytes(hashlib.blake2b(name, key=secret, digest_size=4).digest(), "little")
