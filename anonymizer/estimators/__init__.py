"""Scikit-learn estimators for the algorithms over records.

`Anonymizer` puts rows into equivalence classes and replaces their quasi-identifiers by
representatives. `Minimizer` generalizes rows as far as a fitted model keeps its score.
"""

from anonymizer.extras import extra

with extra("learn"), extra("tables"):
    from anonymizer.estimators.anonymizer import Anonymizer
    from anonymizer.estimators.minimizer import Minimizer

__all__ = ["Anonymizer", "Minimizer"]
