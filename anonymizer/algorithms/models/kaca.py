"""KACA: classes of k persons by clustering, with labels of the user's choice."""

from anonymizer.algorithms.models.model import MadeOf, Model
from anonymizer.algorithms.records.methods import methods_in

MODEL = Model(
    name="kaca",
    promises=("k", "l"),
    has_labels=True,
    formed=MadeOf.CLUSTERS,
    methods=methods_in("anonymizer.algorithms.kaca.clustering", "fast", "kmeans"),
    of_streams=("kmeans", "fast"),
    extras={"kmeans": ("learn",)},
    counts_alone=True,
    title="KACA",
    explained="Records are clustered first and generalized afterwards: at least {k} vehicles are in"
    " each row.",
    heading="KACA",
    meaning="k vehicles, clustered first and generalized afterwards.",
    in_streams="`fast`, which is also `auto`, or `kmeans`, as published and slow from some 10,000"
    " records on.",
)
