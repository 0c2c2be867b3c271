"""The methods of streams: what the settings of a stream ask of them."""

import numpy as np

from anonymizer.algorithms.records.problem import make_problem, with_criteria
from anonymizer.algorithms.records.tally import may_prefer
from anonymizer.domain.promises import Promise
from anonymizer.domain.records import Records
from anonymizer.pipeline.records.declaration import Stream
from tests.pipeline.records.made import stream


def vehicles(of: Stream, n: int = 80) -> Records:
    rng = np.random.default_rng(1)
    columns = [np.minimum(rng.geometric(0.45, n) - 1, 3) for _ in of.schema.qis]
    sensitive = [rng.integers(0, 3, n) for _ in of.schema.sensitive]
    return Records(
        np.column_stack(columns).astype(np.int32),
        np.column_stack(sensitive).astype(np.int32),
        np.arange(n, dtype=np.int32),
    )


def test_a_share_is_preferred_of_values_and_not_of_what_stands_for_their_loss() -> None:
    of = stream(promise={"k": 5, "d": 2})
    records = vehicles(of)
    lost = make_problem(records, of.schema, Promise(k=5, d=1))
    problem = with_criteria(lost, make_problem(records, of.schema, of.promise))
    n_qis = len(of.schema.qis)
    assert len(problem.position) == problem.rule["size"].sum()  # kernels rely on it
    chosen = may_prefer(problem, 0.99)
    assert not chosen[:n_qis].any()
    assert chosen[n_qis : 2 * n_qis].all()
    n_tuples = sum(len(source) > 1 for source in of.schema.sources)
    assert not chosen[2 * n_qis : 2 * n_qis + n_tuples].any()
