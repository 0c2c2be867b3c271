"""KACA: cluster the records first, generalize each cluster afterwards.

`features` puts quasi-identifiers on comparable scales, `forming` makes classes of them (`kmeans`
as published, or `halving` and `improving`, fast), `merging` joins what does not keep the promise,
`labels` says what a class is in words that cover all of its members, `summaries` counts it, and
`verifying` reads the words back.
"""
