import ast
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

import anonymizer
from anonymizer.domain.arrays import IntArray
from anonymizer.domain.brief_repr import shows


@shows("topic", "tick", "key", "payload")
class _Message(NamedTuple):
    topic: str
    tick: int
    key: IntArray
    payload: bytes
    device: str = "secret"


@shows()
@dataclass(frozen=True, slots=True)
class _Place:
    lat: float


def test_numbers_and_texts_are_shown_and_of_anything_longer_its_length() -> None:
    message = _Message("t", 7, np.array([61, 24]), b"60.17")
    assert repr(message) == "_Message('t', 7, 2, 5)"
    assert repr([message]) == "[_Message('t', 7, 2, 5)]"
    assert f"{message}" == "_Message('t', 7, 2, 5)"


def test_without_fields_the_class_alone_is_shown() -> None:
    assert repr(_Place(60.17)) == "_Place(...)"
    assert _Place(60.17) == _Place(60.17)


def test_every_class_has_the_fields_that_it_shows() -> None:
    """They are named by texts, which no type checker reads."""
    wrong, n_shown = [], 0
    for path in Path(anonymizer.__file__).parent.rglob("*.py"):
        for kind in ast.walk(ast.parse(path.read_text())):
            if not isinstance(kind, ast.ClassDef):
                continue
            nodes = list(ast.walk(kind))
            has = {ast.unparse(each.target) for each in nodes if isinstance(each, ast.AnnAssign)}
            has |= {each.name for each in nodes if isinstance(each, ast.FunctionDef)}
            has |= {each.attr for each in nodes if isinstance(each, ast.Attribute)}
            for call in kind.decorator_list:
                if isinstance(call, ast.Call) and ast.unparse(call.func) == "shows":
                    n_shown += 1
                    named = {ast.literal_eval(each) for each in call.args}
                    wrong += [(kind.name, each) for each in named - has]
    assert n_shown > 30
    assert wrong == []
