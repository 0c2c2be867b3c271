"""Equivalence classes that are the cells of a decision tree: data that a model can learn from.

`grow` learns the tree, once; `prune` cuts it back until every cell keeps the promise, in a small
part of that time, so that a search over promises needs few trees. `cells` is both in one.
"""
