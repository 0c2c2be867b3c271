"""Cells: equivalence classes that are the leaves of a decision tree, so that models can learn.

`grow` learns the tree once. `prune` then cuts it back until every cell keeps the promise, which
takes a small part of that time, so a search over promises needs few trees.
"""
