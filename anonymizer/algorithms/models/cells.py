"""(k,l) cells of a decision tree, which follows what a model will learn from the release."""

from anonymizer.algorithms.models.model import MadeOf, Model
from anonymizer.algorithms.records.methods import methods_in

MODEL = Model(
    name="cells",
    promises=("k", "l"),
    formed=MadeOf.CELLS,
    methods=methods_in("anonymizer.algorithms.cells.pruning", "tree"),
    of_streams=("tree",),
    title="(k,l) cells of a decision tree",
    explained="Each row is a leaf of a tree: at least {k} vehicles are in it, with at least {l}"
    " different sensitive values.",
    heading="(k,l) cells of a decision tree",
    meaning="k vehicles and l sensitive values (`l` is 1 unless set, and at most k) in each cell of"
    " a decision tree.",
    in_streams="`tree`.",
)
