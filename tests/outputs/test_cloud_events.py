"""Messages as CloudEvents."""

import pytest

from anonymizer.outputs.cloud_events import cloudevent
from anonymizer.pipeline.ports import Outgoing


@pytest.mark.parametrize("other", [Outgoing("a", b"2"), Outgoing("b", b"1")])
def test_an_event_has_an_id_of_its_own_that_stays(other: Outgoing) -> None:
    first = Outgoing("a", b"1")
    headers = cloudevent(first, kind="Group", source="/gateway")
    assert headers == cloudevent(first, kind="Group", source="/gateway")
    said, of_other = dict(headers.user), dict(cloudevent(other, kind="Group", source="/").user)
    assert said["id"] != of_other["id"]
    assert said | {"id": ""} == {
        "specversion": "1.0",
        "id": "",
        "source": "/gateway",
        "type": "anonymizer.Group.v1",
    }
