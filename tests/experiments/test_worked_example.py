from pathlib import Path

from matplotlib.image import imread

from experiments.worked_example import COLUMNS, VEHICLES, draw_example, example_rows, worked_example


def test_plain_anonymity_leaks_and_the_two_models_do_not() -> None:
    joined, plain, with_d, with_l = worked_example()
    assert joined.rows == tuple(tuple(map(str, row)) for row in VEHICLES)
    qis = slice(0, 4)
    assert plain.learned[:, qis].sum() > 0
    assert with_d.learned[:, qis].sum() == with_l.learned[:, qis].sum() == 0


def test_only_with_l_every_class_has_two_faults() -> None:
    *_, with_d, with_l = worked_example()
    faults_of = [
        {of: {row[4] for c, row in zip(step.class_of, step.rows, strict=True) if c == of}
         for of in step.class_of}
        for step in (with_d, with_l)
    ]  # fmt: skip
    assert min(map(len, faults_of[0].values())) == 1
    assert min(map(len, faults_of[1].values())) >= 2
    assert with_d.learned[:, 4].any()
    assert not with_l.learned.any()


def test_the_example_is_told_by_the_row_and_drawn(tmp_path: Path) -> None:
    steps = worked_example()
    rows = example_rows(steps)
    assert len(rows) == len(steps) * len(VEHICLES)
    assert rows[0].keys() == {"release", "class", *COLUMNS, "learned"}
    draw_example(steps, tmp_path / "example.png")
    assert imread(tmp_path / "example.png").shape[1] > 2000
