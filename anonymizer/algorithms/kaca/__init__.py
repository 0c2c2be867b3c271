"""KACA: k-anonymity by clustering the records first and generalizing each cluster afterwards.

`features` puts the quasi-identifiers on comparable scales. `clustering` forms the classes: by
K-Means as published, or by `bisection` and `local_improvement`, which is fast. `class_merging`
joins classes that do not keep the promise, and `class_statistics` computes the counts and means of
each. The labels are in `records.generalized_values`; `coarsening` joins published classes for a
larger k.
"""
