import json
import logging

import pytest
import structlog

from anonymizer.observe.logs import Bounded, configure_logs
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


def test_what_comes_again_and_again_is_written_a_few_times_a_minute_and_counted() -> None:
    now = 0.0
    bounded = Bounded(lambda: now)
    written = []
    for i in range(700):
        now = i / 2
        try:
            written.append(bounded(None, "warning", {"event": "waits for Kafka", "reason": str(i)}))
        except structlog.DropEvent:
            continue
    assert len(written) == 36  # six in each of the six minutes
    assert sum(1 + each.get("left_out", 0) for each in written) >= 600
    assert bounded(None, "warning", {"event": "another"}) == {"event": "another"}
    for _ in range(100):
        assert bounded(None, "info", {"event": "window closed"})


@pytest.mark.parametrize("form", ["json", "text"])
def test_a_library_speaks_through_the_log_without_what_it_quotes(
    form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    configure_logs(LogSettings.model_validate({"format": form}))
    for i in range(500):
        logging.getLogger("uvicorn.error").warning("Invalid request of %s\nsecond", f"secret-{i}")
        try:
            int(f"secret-{i}")
        except ValueError:
            logging.getLogger("asyncio").exception("Exception in callback")
    err = capsys.readouterr().err
    assert "secret" not in err
    assert "second" not in err
    assert 2 <= len(err.splitlines()) <= 12
    if form == "json":
        assert {json.loads(line)["event"] for line in err.splitlines()} == {
            "Invalid request of %s",
            "Exception in callback",
        }
        assert json.loads(err.splitlines()[1])["error"] == "ValueError"
