"""Messages between the stages of the records flow."""

from typing import Any

import numpy as np
import pytest

from anonymizer.cluster.positions.raw_batches import RAW, STATEMENTS
from anonymizer.cluster.positions.stage_messages import BATCH, REPORT
from anonymizer.cluster.records.window_messages import (
    Ask,
    Close,
    Finished,
    Formed,
    Held,
    Plan,
    RangeAnswer,
    RangeRows,
    Recall,
    Settled,
    Shuffled,
    Survey,
    TickState,
    encode,
    takes_long,
)
from anonymizer.domain.arrays import Int32Array

LEFT_OUT = np.ones(2, bool)
CODES: Int32Array = np.array([777, 888], np.int32)
KEY = CODES.astype(np.int64)
OUTCOME = CODES.astype(np.uint8)
VALUES = {0: ["secret"]}
MEMORIES = [b"secret", None]
COLUMNS = [CODES]
MESSAGES = (
    Survey(0, 1, 2, 3, 4, 5, KEY, 6, CODES, VALUES, {0: KEY}),
    Plan(0, 2, 1, [], CODES, VALUES, {0: KEY}),
    RangeRows(0, 1, 2, 3, 4, 5, 6, [], VALUES, COLUMNS, KEY, MEMORIES),
    Formed(0, 2, 3, 6, [], VALUES, 1, {}, 0, COLUMNS, KEY, MEMORIES, CODES, LEFT_OUT),
    Settled(0, 2, 3, 1, 1, 1, OUTCOME, MEMORIES),
    RangeAnswer(0, 2, 3, 4, 5, OUTCOME, MEMORIES),
    Shuffled(0, 2, 5, [1], b"secret"),
    Held(0, 1, 2, 3, 4, b"secret"),
)


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)
def test_no_record_is_in_the_repr_of_a_message(message: object) -> None:
    shown = repr(message)
    assert shown.startswith(f"{type(message).__name__}(")
    assert not any(each in shown for each in ("secret", "777", "888", "array", "["))


@pytest.mark.parametrize(
    "message",
    [*MESSAGES, Close(0, 2, 3), Recall(0, 7), Ask(0, 2, 3)],
    ids=lambda message: type(message).__name__,
)
def test_a_message_after_which_a_stage_joins_divides_or_forms_classes_takes_long(
    message: Any,  # noqa: ANN401  of any kind
) -> None:
    assert takes_long(encode(message)) is not isinstance(message, Shuffled)


def test_no_message_that_comes_all_the_time_takes_long() -> None:
    tick = TickState(0, 1, 2, 3.0, [4.0], [5.0], [6], 7)
    messages = [encode(tick), encode(Finished(0, 2)), RAW, STATEMENTS, BATCH, REPORT]
    assert not any(map(takes_long, messages))
