"""Small benches for the tests of the search."""

import numpy as np

from anonymizer.app.tuning.bench import Bench, Learner, Window, split_persons
from anonymizer.domain.promises import Promise
from anonymizer.domain.records import Records
from tests.algorithms.records.made import SCHEMA


def window(n: int, *, seed: int) -> Window:
    """Records of `SCHEMA`, whose age and work tell the target, more or less."""
    rng = np.random.default_rng(seed)
    attributes = (*SCHEMA.qis, *SCHEMA.sensitive)
    cells = np.column_stack([rng.integers(0, a.size, n) for a in attributes]).astype(np.int32)
    target = ((cells[:, 0] > 1) ^ (cells[:, 1] == 0) ^ (rng.random(n) < 0.1)).astype(np.int32)
    person = np.arange(n, dtype=np.int32)
    return Window(Records(cells[:, :3].copy(), cells[:, 3:].copy(), person), target)


def bench(n: int = 120, *, seed: int = 0, learner: Learner = "tree", windows: int = 1) -> Bench:
    """A bench of some windows, the last held out in part."""
    made = [window(n, seed=seed + i) for i in range(windows)]
    kept, judged = split_persons(made[-1], share=0.25, seed=seed)
    return Bench(
        schema=SCHEMA,
        windows=(*made[:-1], kept),
        test_windows=(judged,),
        base=Promise(k=2),
        learner=learner,
        seed=seed,
    )
