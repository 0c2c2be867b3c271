"""Messages between the stages of the records flow."""

import numpy as np
import pytest

from anonymizer.domain.arrays import Int32Array
from anonymizer.pipeline.records.window_messages import Answer, Formed, Plan, Rows, Settled, Survey

CODES: Int32Array = np.array([777, 888], np.int32)
KEY = CODES.astype(np.int64)
OWN = np.ones(2, bool)
OUTCOME = CODES.astype(np.uint8)
VALUES = {0: ["secret"]}
MEMORIES = [b"secret", None]
COLUMNS = [CODES]
MESSAGES = (
    Survey(0, 1, 2, 3, 4, KEY, CODES, VALUES),
    Plan(0, 2, 1, [], CODES, VALUES),
    Rows(0, 1, 2, 3, 4, 5, 6, [], VALUES, COLUMNS, KEY, OWN, MEMORIES),
    Formed(0, 2, 3, 6, [], VALUES, 1, {}, 0, COLUMNS, KEY, OWN, MEMORIES, CODES, OWN),
    Settled(0, 2, 3, 1, 1, 1, OUTCOME, MEMORIES),
    Answer(0, 2, 3, 4, OUTCOME, MEMORIES),
)


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)
def test_no_record_is_in_the_repr_of_a_message(message: object) -> None:
    shown = repr(message)
    assert shown.startswith(f"{type(message).__name__}(")
    assert not any(each in shown for each in ("secret", "777", "888", "array", "["))
