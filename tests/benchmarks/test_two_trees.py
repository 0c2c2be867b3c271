"""Work trees in turns: equal code publishes equal messages."""

from pathlib import Path

import pytest

from benchmarks.two_trees import Second, lines, main

ROOT = Path(__file__).parents[2]


def test_a_tree_beside_itself_publishes_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    size = ["--network=city:300", "--devices=100", "--seconds=12", "--warm=8"]
    main([str(ROOT), str(ROOT), *size])
    _, _, first, other = capsys.readouterr().out.splitlines()
    assert first.endswith("| 1.000 | yes |")
    assert other.endswith("| yes |")
    assert first.split("|")[3] == other.split("|")[3] != " 0 "


def test_a_ratio_is_that_of_seconds_at_the_same_time_and_other_messages_are_seen() -> None:
    loaded = [1.0, 4.0, 1.0]
    one, other = (
        [Second(times * each, 10, 1, digest) for each in loaded]
        for times, digest in ((1.0, "a"), (1.5, "b"))
    )
    *_, row = lines([Path("a"), Path("b")], [one, other], warm=1)
    assert row == "| b | 375000.00 | 2 | 1.500 | no |"
