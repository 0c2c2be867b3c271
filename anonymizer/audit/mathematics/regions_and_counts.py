"""A release of regions read together with counts by cells of the same devices.

A region says where a device may be; counts say how many devices are in each cell. The belief that
is true to both, and otherwise near to the regions alone, is found by iterative proportional fitting
[1]_.

References
----------
.. [1] W. Deming, F. Stephan, "On a least squares adjustment of a sampled frequency table when the
   expected marginal totals are known", Annals of Mathematical Statistics 11(4), 1940.
"""

import numpy as np
from scipy.sparse import csr_array, diags_array

from anonymizer.domain.arrays import FloatArray, IntArray

ROUNDS = 30


def cells_given_counts(
    shares: csr_array, n: FloatArray, run_of: IntArray, counted: FloatArray
) -> csr_array:
    """Return the belief in the cell of a device of each region, shape (regions, cells).

    Parameters
    ----------
    shares
        The same from the regions alone, shape (regions, cells); rows add up to 1.
    n
        Devices in each region, above 0, shape (regions,).
    run_of
        Run of each cell: cells that are counted together, shape (cells,).
    counted
        Devices in each run, shape (runs,). Those that are in no region may be anywhere.

    Notes
    -----
    Cells of regions that are said to hold nobody keep a little: rounded counts may be wrong.
    O(`ROUNDS` x entries of the shares).
    """
    n_runs = len(counted)
    in_run = csr_array((np.ones(len(run_of)), (np.arange(len(run_of)), run_of)))
    strangers = max(float(counted.sum() - n.sum()), 0.0)
    spread = strangers * np.bincount(run_of, minlength=n_runs) / max(len(run_of), 1)
    there = counted * (float(n.sum()) + strangers) / max(float(counted.sum()), 1e-9)
    held = csr_array(diags_array(n) @ shares)
    for _ in range(ROUNDS):
        found = np.asarray((held @ in_run).sum(axis=0)).ravel() + spread
        factor = (there + 1e-3) / (found + 1e-3)
        spread *= factor * strangers / max(float((spread * factor).sum()), 1e-9)
        held = csr_array(held @ diags_array(factor[run_of]))
        held = csr_array(diags_array(n / np.asarray(held.sum(axis=1)).ravel()) @ held)
    return csr_array(diags_array(1.0 / n) @ held)
