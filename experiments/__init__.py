"""Experiments: the published experiments, repeated with the operators of the product."""
