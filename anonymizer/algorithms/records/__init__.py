"""Anonymization of records: equivalence classes that keep k, d, l and further criteria.

`problem` states the task and `criteria` tells whether a class keeps the promise. `sweep`,
`optimal_cuts`, `local_search` and `mondrian` form classes; `measures` computes the information
loss, and `verification` checks the result independently. `cumulative` and
`cumulative_enforcement` account for several windows of one stream.
"""
