"""Whether a table can keep a promise at all: refuse before anything is published."""

import numpy as np

from anonymizer.algorithms.records.criteria import ROUNDING
from anonymizer.algorithms.records.problem import Problem
from anonymizer.domain.arrays import IntArray
from anonymizer.domain.records import Schema


def why_impossible(problem: Problem, schema: Schema) -> str | None:
    """Return why no class of these records can keep the promise; None: nothing speaks against it.

    Parameters
    ----------
    problem, schema
        As posed: the schema gives the names.

    Returns
    -------
    reason
        One line that names the attribute, but no value: "sex has 2 values, d = 3".

    Notes
    -----
    For k, d, l and spread the answer is exact: where there is no reason, the whole table is a
    class. Bounds on shares and entropy are tried on the number of values alone; t-closeness is
    always kept by the whole table. O(n columns).
    """
    if problem.n_persons < problem.k:
        return f"there are {problem.n_persons:,} persons, k = {problem.k}"
    n_tuples = len(problem.rule) - len(schema.qis) - len(schema.sensitive)
    sources = [source for source in schema.sources if len(source) > 1][:n_tuples]
    names = (
        *(a.name for a in schema.qis),
        *("(" + ", ".join(schema.qis[j].name for j in source) + ")" for source in sources),
        *(a.name for a in schema.sensitive),
    )
    for c, name in enumerate(names):
        reason = _why(problem, c, "d" if c < problem.n_qis else "l")
        if reason:
            return f"{name} {reason}"
    return None


def _why(problem: Problem, c: int, letter: str) -> str | None:
    """Return what is wrong with one column."""
    rule = problem.rule[c]
    present: IntArray = np.flatnonzero(np.bincount(problem.cells[:, c]))
    real = present[present != rule["missing"]]
    if len(real) < rule["distinct"]:
        return f"has {len(real)} {_values(len(real))}, {letter} = {rule['distinct']}"
    if rule["spread"] > 0:
        ends = problem.position[rule["first_position"] + real[[0, -1]]] if len(real) else [0, -1]
        if not ends[1] - ends[0] >= rule["spread"] - ROUNDING:
            return f"spans less than the {rule['spread']:g} asked for"
    n = len(present)
    if rule["share"] * n < 1 - ROUNDING:
        return f"has {n} {_values(n)}, and none may be more than {rule['share']:g} of a class"
    if np.log(n) < rule["entropy"] - ROUNDING:
        return f"has {n} {_values(n)}, entropy-l = {np.exp(rule['entropy']):g}"
    return None


def _values(n: int) -> str:
    return "value" if n == 1 else "values"
