"""KACA: k-anonymity by clustering the records first and generalizing each cluster afterwards.

`features` puts the quasi-identifiers on comparable scales. `clustering` forms the classes: by
K-Means as published, or by `bisection` and `local_improvement`, which is fast. `class_merging`
joins classes that do not keep the promise. `labels` generalizes each class to labels that cover
all of its members, `class_statistics` computes its counts and means, and `label_verification`
checks the labels independently.
"""
