"""What a stage of streams tells itself."""

import pytest

from anonymizer.cluster.packed_state import pack
from anonymizer.cluster.positions.raw_batches import RAW, STATEMENTS
from anonymizer.cluster.positions.stage_messages import BATCH, REPORT
from anonymizer.cluster.records.due_windows import DueWindow, decode_due, encode_due, takes_long


def test_a_stage_takes_long_over_a_window_that_is_due_and_over_nothing_that_bridges_send() -> None:
    due = DueWindow(1, -7)
    assert decode_due(encode_due(due)) == due
    assert takes_long(encode_due(due))
    assert not any(map(takes_long, (RAW, STATEMENTS, BATCH, REPORT, b"")))


@pytest.mark.parametrize(
    "fields", [[], [0], [0, 1, 2], [-1, 0], [True, 0], [0, 1.0], ["0", 0], {}, None, b"\0\0"]
)
def test_what_names_no_window_is_refused(fields: object) -> None:
    with pytest.raises(ValueError, match=r"^this is no window of a stream$"):
        decode_due(b"C" + pack(fields))
