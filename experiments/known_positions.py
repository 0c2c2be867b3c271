"""Linking by known positions: the name of a device of which a few true positions are known.

Four positions are enough to tell almost every trace from all others [1]_. The adversary weighs each
name by how likely what it published is, given the known positions.

References
----------
.. [1] Y.-A. de Montjoye, C. Hidalgo, M. Verleysen, V. Blondel, "Unique in the Crowd: the privacy
   bounds of human mobility", Scientific Reports 3, 2013.
"""

import numpy as np
from scipy.sparse import csr_array

from anonymizer.algorithms.releases.observed import Observed
from anonymizer.audit.mathematics.evidence import SLIP
from anonymizer.domain.arrays import BoolArray, FloatArray, IntArray


def linked(log_likelihood: FloatArray, is_targets: BoolArray) -> float:
    """Return how often the likeliest name is the target's; among equals, one is guessed.

    Parameters
    ----------
    log_likelihood
        Of each name, given the known positions of each target; minus infinity if it is not in use,
        shape (targets, names).
    is_targets
        Whether a name is the target's, likewise. A target may have none: it is never found.
    """
    best = log_likelihood.max(axis=1, keepdims=True)
    guessed = (log_likelihood >= best - 1e-9) & np.isfinite(log_likelihood)
    n = np.maximum(guessed.sum(axis=1), 1)
    return float(((guessed & is_targets).sum(axis=1) / n).mean())


def likelihood_of_regions(
    observed: Observed, records: IntArray, node: IntArray, *, n_nodes: int
) -> FloatArray:
    """Return how likely the regions of each pseudonym are, given known positions.

    Parameters
    ----------
    records
        Record of each pseudonym that holds at each known time of each target, negative for none,
        shape (targets, times, pseudonyms).
    node
        Known node of each target at each time, shape (targets, times).

    Returns
    -------
    log_likelihood
        Shape (targets, pseudonyms); minus infinity for a pseudonym without a record at the first
        time. A pseudonym that has none at a later time is as likely as one whose region could be
        anywhere, because devices change their pseudonyms.
    """
    region = np.repeat(np.arange(observed.n_regions), observed.region_size)
    shape = (observed.n_regions, n_nodes)
    inside = csr_array((np.ones(len(region)), (region, observed.node)), shape=shape).tocsc()
    size = observed.region_size
    found = np.zeros((records.shape[0], records.shape[2]))
    for target, of_target in enumerate(records):
        for time, record in enumerate(of_target):
            covers = np.zeros(observed.n_regions, bool)
            v = int(node[target, time])
            covers[inside.indices[inside.indptr[v] : inside.indptr[v + 1]]] = True
            there = record >= 0
            at = observed.region_of[record[there]]
            factor = np.full(records.shape[2], -np.log(n_nodes))
            factor[there] = np.where(covers[at], -np.log(size[at]), np.log(SLIP / n_nodes))
            found[target] += factor
        found[target, of_target[0] < 0] = -np.inf
    return found
