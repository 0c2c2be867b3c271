"""Options of a table, stated once: what a keyword, a field and an option of a command share."""

from collections.abc import Callable
from dataclasses import MISSING, fields
from inspect import signature
from math import isfinite
from pathlib import Path
from typing import Any, Unpack, get_type_hints

import numpy as np
import pytest
import typer
from typer.main import get_command
from typer.testing import CliRunner

import anonymizer
from anonymizer.api.keywords import AuditKeywords, RangeKeywords, TableKeywords, takes_keywords
from anonymizer.app.table_options import AuditOptions, Options, TableOptions, kinds_of
from anonymizer.cli.columns import takes_options
from anonymizer.cli.main import app
from anonymizer.cli.tune import TuneOptions
from anonymizer.domain.criteria.registry import BY_NAME, FURTHER
from anonymizer.errors import SettingsError


@pytest.mark.parametrize(
    ("keywords", "model"), [(TableKeywords, TableOptions), (AuditKeywords, AuditOptions)]
)
def test_the_keywords_of_a_function_are_the_fields_of_its_options(
    keywords: Any,  # noqa: ANN401  a TypedDict
    model: type[Options],
) -> None:
    assert get_type_hints(keywords) == get_type_hints(model)
    required = {each.name for each in fields(model) if each.default is MISSING}
    assert keywords.__required_keys__ == required


@pytest.mark.parametrize(
    ("words", "model", "left_out"),
    [
        ("anonymize", TableOptions, set()),
        ("audit table", AuditOptions, set()),
        ("tune", TuneOptions, {"as_published", "keep", "labels", "measures"}),
    ],
)
def test_every_field_is_an_option_of_the_command(
    words: str, model: type[Options], left_out: set[str]
) -> None:
    command: Any = get_command(app)
    for word in words.split():
        command = command.commands[word]
    named = {each.name for each in command.params}
    assert {each.name for each in fields(model)} - named == left_out
    assert "options" not in named


def test_what_an_option_is_given_reaches_its_field(tmp_path: Path) -> None:
    (tmp_path / "order.json").write_text('{"job": ["a", "b"]}')
    criteria: dict[str, Any] = {
        each.name: {"age": 2} if each.per_attribute else 0.7 if each.most == 1 else 1.5
        for each in FURTHER
    }
    asked = TableOptions(
        qi=["age", "job"],
        k=7,
        d=3,
        l=4,
        k_extra=2,
        sa=["ill", "pay"],
        id="name",
        sources=[["age"], ["job"]],
        hierarchies={"job": "j.csv"},
        labels={"age": "hours"},
        orders={"job": ("a", "b")},
        domains={"age": [1, 9]},
        bands={"pay": [2, 3]},
        categories=["ill"],
        missing=["-"],
        exact=["job"],
        keep=["town"],
        measures=["pay"],
        as_published=True,
        model="kld",
        method="hilbert",
        cost="set",
        seed=5,
        dm_weight=0.2,
        prefer_share=0.3,
        share_price=0.4,
        weights={"age": 2},
        suppress=0.5,
        time_budget_s=6,
        target="ill",
        language="en",
        **criteria,
    )
    assert not [each.name for each in fields(asked) if getattr(asked, each.name) == each.default]
    seen = []
    command = typer.Typer()

    @command.command()
    @takes_options(TableOptions)
    def given(options: TableOptions) -> None:
        seen.append(options)

    arguments = (
        "--qi age,job -k 7 -d 3 -l 4 --sa ill,pay --id name --source age --source job"
        f" --hierarchy job=j.csv --label age=hours --order {tmp_path / 'order.json'}"
        " --domain age=1:9 --bands pay=2:3 --category ill --missing - --exact job --keep town"
        " --measure pay --as-published --model kld --method hilbert --cost set --seed 5"
        " --k-extra 2 --dm-weight 0.2 --prefer-share 0.3 --share-price 0.4 --weight age=2"
        " --suppress 0.5"
        " --time-budget 6 --target ill --lang en"
    )
    for name, value in criteria.items():
        arguments += f" --{name.replace('_', '-')} {'age=2' if isinstance(value, dict) else value}"
    CliRunner().invoke(command, arguments.split(), catch_exceptions=False)
    assert seen == [asked]


@pytest.mark.parametrize(
    ("function", "model", "own"),
    [
        (anonymizer.anonymize, TableOptions, ["table"]),
        (
            anonymizer.audit_table,
            AuditOptions,
            ["release", "original", "auditor_map", "population"],
        ),
    ],
)
def test_help_of_a_public_function_lists_its_keywords_with_their_defaults(
    function: Callable[..., object], model: type[Options], own: list[str]
) -> None:
    parameters = signature(function).parameters
    required = [each.name for each in fields(model) if each.default is MISSING]
    assert list(parameters)[: len(own) + len(required)] == [*own, *required]
    assert sorted(parameters) == sorted([*own, *(each.name for each in fields(model))])
    assert all(each.name in (function.__doc__ or "") for each in FURTHER)
    assert parameters["entropy_l"].default == 1.0
    assert parameters["qi"].default is parameters["qi"].empty


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"qi": "age", "k": 2, "frog": 1}, "got an unexpected keyword argument 'frog'"),
        ({"qi": "age"}, "missing a required argument: 'k'"),
        ({"qi": "age", "k": 2, "suppress": 0.5}, "got an unexpected keyword argument 'suppress'"),
    ],
)
def test_a_function_refuses_keywords_that_it_does_not_take(
    given: dict[str, Any], said: str
) -> None:
    @takes_keywords(TableOptions)
    def of_ranges(*, more: int = 0, **options: Unpack[RangeKeywords]) -> int:
        return TableOptions(**options).k + more

    assert of_ranges(qi="age", k=2, more=1) == 3
    with pytest.raises(TypeError, match=said):
        of_ranges(**given)


GOOD: dict[str, Any] = {"qi": "age", "k": 5}
LIMITED = [
    (model, name, known)
    for model in (TableOptions, AuditOptions, TuneOptions)
    for name, (_, known) in kinds_of(model).items()
    if known.least is not None
]


@pytest.mark.parametrize(("model", "name", "known"), LIMITED)
def test_a_number_beyond_its_limits_is_refused_by_the_name_of_the_option(
    model: Any,  # noqa: ANN401  called with any option
    name: str,
    known: Any,  # noqa: ANN401  likewise
) -> None:
    def made(value: object) -> object:
        given = GOOD if model is TableOptions else {"qi": "age"}
        by_name = {each.name for each in BY_NAME}
        return model(**given | {name: {"age": value} if name in by_name else value})

    made(known.least)
    above = [known.most + 1] if isfinite(known.most) else []
    for bad in (known.least - 1, *above, "frog", float("nan")):
        with pytest.raises(SettingsError, match=f"^{name}: must be a "):
            made(bad)


@pytest.mark.parametrize("name", ["model", "cost", "language"])
def test_a_text_that_is_none_of_the_choices_is_refused(name: str) -> None:
    with pytest.raises(SettingsError, match=f"^{name}: must be one of "):
        TableOptions(**GOOD | {name: "frog"})
    with pytest.raises(SettingsError, match=r"^labels: must be one of plain, prefix, hours"):
        TableOptions(**GOOD | {"labels": {"age": "frog"}})


def test_what_may_not_be_left_out_may_not_be_none() -> None:
    assert TableOptions(**GOOD | {"d": None, "t": None}).d is None
    for name in ("k", "entropy_l", "seed"):
        with pytest.raises(SettingsError, match=f"^{name}: must be a"):
            TableOptions(**GOOD | {name: None})


def test_numbers_of_numpy_become_numbers_of_python() -> None:
    options = TableOptions(**GOOD | {"k": np.int64(7), "max_share": np.float32(0.5)})
    assert (type(options.k), type(options.max_share)) == (int, float)
