import json
import logging

import pytest
import structlog

from anonymizer.observe.logs import configure_logs
from anonymizer.settings import LogSettings


def test_a_line_of_json_is_an_event_with_its_level_and_time(
    capsys: pytest.CaptureFixture[str],
) -> None:
    configure_logs(LogSettings())
    structlog.get_logger().info("network loaded", nodes=3)
    out, err = capsys.readouterr()
    assert out == ""
    event = json.loads(err)
    assert event.pop("timestamp").endswith("Z")
    assert event == {"event": "network loaded", "level": "info", "nodes": 3}


def test_what_is_below_the_level_is_not_logged(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs(LogSettings(level="warning"))
    log = structlog.get_logger()
    log.info("listening")
    log.warning("broker lost")
    assert [json.loads(line)["event"] for line in capsys.readouterr().err.splitlines()] == [
        "broker lost"
    ]


def test_text_is_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs(LogSettings(format="text"))
    structlog.get_logger().info("listening", url="http://127.0.0.1:8080")
    line = capsys.readouterr().err
    assert "listening" in line
    assert "url=http://127.0.0.1:8080" in line
    assert "\x1b" not in line, "no colours where nobody looks"


@pytest.mark.parametrize("form", ["json", "text"])
def test_a_logged_failure_shows_no_local_variables(
    form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    configure_logs(LogSettings.model_validate({"format": form}))
    device = f"secret-{len(form)}"

    def fail(at: str) -> None:
        raise ValueError(len(at))

    try:
        fail(device)
    except ValueError:
        structlog.get_logger().exception("stage failed")
    err = capsys.readouterr().err
    assert "stage failed" in err
    assert device not in err


def test_every_level_that_can_be_set_is_one_of_the_standard_library() -> None:
    for level in ("debug", "info", "warning", "error"):
        configure_logs(LogSettings.model_validate({"level": level}))
        assert structlog.get_logger().is_enabled_for(logging.ERROR)
