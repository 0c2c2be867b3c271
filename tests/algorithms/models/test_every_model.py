"""Every model of a release: options, settings, tables, streams, estimators and `tune` take it."""

import json
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import anonymizer
from anonymizer.algorithms.models import MODULES
from anonymizer.algorithms.models.model import Model
from anonymizer.algorithms.models.registry import MODELS
from anonymizer.algorithms.records.classes import classes_of
from anonymizer.app.table_options import TableOptions, kinds_of
from anonymizer.app.tuning.bench import Trained, bench_of_table
from anonymizer.app.tuning.forming import verify
from anonymizer.app.tuning.space import Space
from anonymizer.app.tuning.trial import Row, try_row
from anonymizer.audit.evidence.outputs import outputs_of
from anonymizer.cli.completion import method_names
from anonymizer.domain.criteria.registry import FURTHER
from anonymizer.domain.promises import Promise
from anonymizer.domain.records import Records
from anonymizer.errors import GuaranteeError
from anonymizer.estimators import Anonymizer
from anonymizer.files.coded_table import Declared
from anonymizer.files.tables import read_table
from anonymizer.pipeline.records.declaration import declare
from anonymizer.pipeline.records.window_models import WINDOW_MODELS
from anonymizer.settings import Settings, StreamSettings
from anonymizer.settings.json_schema import json_schema
from tests.pipeline.records.made import Sent
from tests.pipeline.records.support import Rig

NEW = "tests.algorithms.models.a_new_model"
CRITERION = "tests.algorithms.models.its_criterion"
each_model = pytest.mark.parametrize("model", MODELS.values(), ids=lambda it: f"model_{it.name}")

PEOPLE = pl.DataFrame(
    {
        "age": [20 + i * 7 % 30 for i in range(80)],
        "home": ["wxyz"[i % 4] for i in range(80)],
        "pay": [float(i * 37 % 11) for i in range(80)],
    }
)


def stated(model: Model) -> dict[str, Any]:
    """Bounds of what the model is about besides k, d and l."""
    return {each.name: 3.0 for each in FURTHER if each.name in model.promises}


def asked(model: Model) -> dict[str, Any]:
    diverse = {"l": max(model.l, 2)} if "l" in model.promises else {}
    return {
        "model": model.name, "qi": ["age", "home"], "sa": ["pay"], "k": 5, "time_budget_s": 0,
    } | diverse | stated(model)  # fmt: skip


def fleet(model: Model) -> dict[str, Any]:
    promise = {"k": 4, **({"l": 2} if "l" in model.promises else {}), **stated(model)}
    return {
        "name": "fleet",
        "model": model.name,
        "method": "auto",
        "window_s": 60.0,
        "lateness_s": 5,
        "idle_s": 30,
        "sources": [{"name": "car", "tells": ["age", "pay"]}],
        "attributes": [
            {"name": "age", "lo": 18, "hi": 90},
            {"name": "pay", "lo": 0, "hi": 20, "role": "sensitive"},
        ],
        "promise": promise,
    }


@each_model
def test_options_settings_and_shells_name_it_with_its_words(model: Model) -> None:
    option = kinds_of(TableOptions)["model"][1]
    assert model.name in option.choices
    assert model.heading in option.help
    keys = json_schema()["$defs"]["StreamSettings"]["properties"]
    assert model.name in keys["model"]["enum"]
    assert model.meaning in keys["model"]["description"]
    assert model.in_streams in keys["method"]["description"]
    assert set(model.of_streams) <= set(keys["method"]["enum"]) & {*model.methods}
    assert "t least 7 vehicles" in model.explained.format(k=7, d=3, l=2)
    assert {*model.methods} <= {*method_names()}


@each_model
def test_a_release_of_a_table_keeps_its_promise_and_is_made_again(model: Model) -> None:
    release, again = (anonymizer.anonymize(PEOPLE, **asked(model)) for _ in range(2))
    assert release.frame.equals(again.frame)
    promised = asked(model) | {"d": model.d}
    required = {name: x for name, x in promised.items() if name not in {"model", "time_budget_s"}}
    if not model.has_labels:  # whose labels are texts of its own
        assert anonymizer.audit_table(release, PEOPLE, **required).holds
    assert release.report.k >= 5
    for name, bound in stated(model).items():
        assert getattr(release.report.asked, name) == bound


@each_model
def test_a_promise_that_lacks_what_the_model_is_about_is_refused(model: Model) -> None:
    for name in stated(model):
        lacking = {key: x for key, x in asked(model).items() if key != name}
        with pytest.raises(anonymizer.errors.SettingsError, match=f"{name} is required"):
            anonymizer.anonymize(PEOPLE, **lacking)
        told = fleet(model)
        del told["promise"][name]
        with pytest.raises(ValueError, match=f"promise: {name} is required"):
            StreamSettings.model_validate(told)


def sent(n: int) -> list[Sent]:
    rng = np.random.default_rng(3)
    ages, pays = rng.integers(18, 90, n), rng.integers(0, 20, n)
    return [
        Sent(f"veh-{v:04}", "car", v / 10, {"age": int(ages[v]), "pay": float(pays[v])})
        for v in range(n)
    ]


@each_model
def test_a_window_keeps_its_promise_and_its_labels_are_read_back(
    model: Model, tmp_path: Path
) -> None:
    rig = Rig(tmp_path, **fleet(model), cumulative="report")
    rig.take(*sent(200))
    rig.close(silent=True)
    classes = rig.classes()
    rig.store.close()
    assert len(classes) > 2
    (reader,) = WINDOW_MODELS[model.name](rig.stream).readers()
    for each in classes:
        assert each["k"] >= 4
        values = [x for x in each["sensitive"]["pay"] if x is not None]
        assert len(set(values)) >= (2 if "l" in model.promises else 1)
        for name in stated(model):
            assert (name, max(values) - min(values) >= 3.0) == (name, True)
        if "value" not in each["qis"]["age"]:  # else it is a representative
            assert reader.runs(each["qis"]["age"])


@each_model
def test_verification_refuses_values_that_are_not_true_of_a_class(model: Model) -> None:
    declared = declare(StreamSettings.model_validate(fleet(model)))
    window = WINDOW_MODELS[model.name](declared)
    age = np.repeat(np.array([1, 40], np.int32), 5)
    records = Records(age[:, None], age[:, None] % 20, np.arange(10, dtype=np.int32))
    class_of = (age > 20).astype(np.int32)
    values = window.generalized(records, classes_of(class_of))
    assert set(window.rejected(records, class_of, values)) == set()
    assert set(window.rejected(records, class_of, values[:1] * 2)) == {1}


@each_model
def test_the_contract_of_a_stream_tells_its_promise(model: Model) -> None:
    settings = Settings.model_validate({"inputs": [], "streams": [fleet(model)]})
    (told,) = [each.promise for each in outputs_of(settings) if "fleet" in each.where]
    for each in FURTHER:
        if each.name in stated(model):
            assert each.promised.format(3.0) in told


@each_model
def test_an_estimator_forms_its_classes(model: Model) -> None:
    rows = np.column_stack([PEOPLE["age"], PEOPLE["home"].cast(pl.Categorical).to_physical()])
    rows = np.column_stack([rows, PEOPLE["pay"]]).astype(float)
    diverse: dict[str, Any] = {"l": 2} if "l" in model.promises else {}
    made = Anonymizer(model.name, k=5, sensitive=[2], time_budget=0, **diverse, **stated(model))
    published = made.fit_transform(rows)
    members = defaultdict(list)
    for c, pay in zip(made.class_of_.tolist(), published[:, 2], strict=True):
        members[c].append(pay)
    members.pop(-1, None)
    assert min(map(len, members.values())) >= 5
    for values in members.values():
        assert all(max(values) - min(values) >= 3.0 for _ in stated(model))


@each_model
def test_tune_tries_it_and_verification_refuses_a_broken_class(
    model: Model, tmp_path: Path
) -> None:
    path = tmp_path / "people.csv"
    PEOPLE.write_csv(path)
    columns = Declared(qis=["age", "home"], sensitive=["pay"])
    base = Promise(k=2, **stated(model))
    bench = bench_of_table(read_table(path, columns.columns), columns, Trained(), base=base)
    (one, *_) = Space(models=[model.name], k=[5]).configurations(sensitive=True)
    (trial,) = try_row(bench, Row(model.name, 5, one.d, (), (one.l,)), max_deletion=1.0)
    assert (trial.state, trial.reached_k >= 5) == ("tried", True)
    promise = bench.promise(k=5, d=one.d, l=one.l, qis=["age", "home"])
    with pytest.raises(GuaranteeError):
        verify(bench, promise, np.arange(bench.n, dtype=np.int32))


@pytest.mark.skipif(NEW in MODULES, reason="it runs here")
def test_a_new_model_is_one_file() -> None:
    """These tests of an exercise, in a process that has it besides."""
    program = (
        "import sys, pytest\n"
        "from anonymizer.domain.criteria import MODULES as criteria\n"
        "from anonymizer.algorithms.models import MODULES as models\n"
        f"criteria.append({CRITERION!r})\nmodels.append({NEW!r})\n"
        "sys.exit(pytest.main(['-v', '-n0', '-p', 'no:cacheprovider', '-k', 'model_ke',"
        f" {json.dumps(__file__)}]))"
    )
    root = Path(__file__).parents[3]
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=root, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-3000:]
    assert "8 passed" in done.stdout
