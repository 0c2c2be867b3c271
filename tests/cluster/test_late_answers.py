"""Kafka's client ends with whoever asked it, so that no answer finds an interpreter that has ended.

Its thread calls Python with each answer. Where that came after the interpreter's end, the process
ended by SIGSEGV, and a supervisor took an orderly end for a crash.
"""

import ast
from itertools import chain

from tests.console import ROOT


def test_every_client_that_asks_kafka_is_closed_by_whoever_made_it() -> None:
    """It is made for a `with`, or for a stack of what is to be closed."""
    n_made = 0
    for path in (ROOT / "anonymizer").rglob("*.py"):
        text = path.read_text()
        if "AdminClient(" not in text:
            continue
        nodes = list(ast.walk(ast.parse(text)))
        calls = [each for each in nodes if isinstance(each, ast.Call)]
        withs = chain.from_iterable(each.items for each in nodes if isinstance(each, ast.With))
        closed: list[ast.expr] = [each.context_expr for each in withs]
        for each in calls:
            if ast.unparse(each.func).endswith(".enter_context"):
                closed += each.args
        made = [each for each in calls if ast.unparse(each.func) == "AdminClient"]
        assert all(each in closed for each in made), path
        n_made += len(made)
    assert n_made
