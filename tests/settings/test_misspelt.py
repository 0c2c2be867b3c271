"""A misspelt key is answered with the one that was probably meant."""

from pathlib import Path

import pytest

from anonymizer.errors import SettingsError
from anonymizer.settings.toml_file import load_settings


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[broker]\nurll = 'x'", "broker.urll: .*; did you mean broker.url\\?$"),
        ("[brokr]", "brokr: .*; did you mean broker\\?$"),
        ("[[inputs]]\ncodek = 'native'", "inputs.0.codek: .*; did you mean inputs.codec\\?$"),
        ("[[inputs]]\n[inputs.payload]\nlatt = 'a'", "did you mean inputs.payload.lat\\?$"),
        ("k_floor = 5", "k_floor: .*; did you mean adka.k_floor\\?$"),
        ("[region]\nepoch_secs = 5", "region.epoch_secs: Extra inputs are not permitted$"),
        ("[region]\nk_flor = 5", "did you mean adka.k_floor\\?$"),
        ("[tick]\ninterval = 5", "did you mean tick.interval_s\\?$"),
        ("[tick]\nqqq = 5", "tick.qqq: Extra inputs are not permitted$"),
        ("[tick.interval_s]\nx = 5", "tick.interval_s: "),
    ],
)
def test_a_misspelt_key_is_answered_with_the_one_that_is_meant(
    tmp_path: Path, text: str, said: str
) -> None:
    file = tmp_path / "gateway.toml"
    file.write_text(text)
    with pytest.raises(SettingsError, match=said):
        load_settings(file, {})


def test_a_misspelt_variable_is_answered_likewise() -> None:
    with pytest.raises(SettingsError, match=r"^environment: broker.ulr: .*did you mean broker.url"):
        load_settings(None, {"ANONYMIZER__BROKER__ULR": "mqtt://localhost"})
