"""Criteria of equivalence classes: each thing that a promise may ask of a class, a file each."""

MODULES = [
    f"{__name__}.k_anonymity",
    f"{__name__}.distinct_values",
    f"{__name__}.l_diversity",
    f"{__name__}.value_share",
    f"{__name__}.source_share",
    f"{__name__}.spread",
    f"{__name__}.entropy_l_diversity",
    f"{__name__}.t_closeness",
]
"""Where each criterion is, in the order in which help, settings and reports tell of them."""
