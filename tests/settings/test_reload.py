"""What a changed settings file comes to while the gateway runs."""

from typing import Any

import pytest

from anonymizer.errors import SettingsError
from anonymizer.settings import Settings
from anonymizer.settings.reload import CHANGEABLE, change


def settings(**tables: Any) -> Settings:  # noqa: ANN401  any settings
    return Settings.model_validate(tables)


def test_the_same_settings_change_nothing() -> None:
    came = change(settings(region={"k_extra": 3}), settings(region={"k_extra": 3}))
    assert came == (settings(region={"k_extra": 3}), {}, [])


def test_what_may_change_does_and_the_rest_waits_by_name_alone() -> None:
    wanted = settings(
        log={"level": "debug", "format": "text"},
        region={"k_extra": 3, "mode": "snapshot"},
        broker={"password": "s3cret"},
        inputs=[{"topic": "raw/{device}"}],
    )
    came = change(Settings(), wanted)
    assert came.settings == settings(log={"level": "debug"}, region={"k_extra": 3})
    assert came.changed == {"log.level": ("info", "debug"), "region.k_extra": (0, 3)}
    assert came.waiting == ["broker.password", "inputs", "region.mode", "log.format"]
    assert "s3cret" not in repr(came)


def test_a_change_that_does_not_fit_what_stays_is_refused_whole() -> None:
    wanted = settings(presence={"ttl_s": 600, "max_behind_s": 500})
    with pytest.raises(SettingsError, match="presence: max_behind_s must not exceed ttl_s"):
        change(Settings(), wanted)


def test_all_that_may_change_is_there_and_none_of_it_is_a_secret() -> None:
    for name in CHANGEABLE:
        table, key = name.split(".")
        value = getattr(getattr(Settings(), table), key)
        assert isinstance(value, int | float | str | tuple), name
    assert not any("floor" in name or "pass" in name for name in CHANGEABLE)
