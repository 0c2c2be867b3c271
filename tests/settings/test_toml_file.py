from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.errors import SettingsError
from anonymizer.settings import Settings, load_settings

SECRET = "s3cret"  # noqa: S105  a word to look for


def load(text: str, tmp_path: Path, **environment: str) -> Settings:
    path = tmp_path / "gateway.toml"
    path.write_text(text)
    return load_settings(path, environment)


def complaint(text: str, tmp_path: Path, **environment: str) -> str:
    """Return what is said of a mistake, without the folder."""
    with pytest.raises(SettingsError) as caught:
        load(text, tmp_path, **environment)
    message = str(caught.value).replace(f"{tmp_path}/", "")
    assert "\n" not in message
    assert SECRET not in message
    return message


def test_the_defaults_are_valid_and_need_no_file() -> None:
    settings = load_settings(None, {})
    assert settings == Settings()
    assert settings.region.mode == "session"


def test_a_file_sets_what_it_names_and_leaves_the_rest(tmp_path: Path) -> None:
    settings = load(
        """
        [broker]
        url = "mqtts://broker.example"
        [adka]
        density_steps = [3]
        k_values = [9, 4]
        [[inputs]]
        topic = "a/{device}"
        [[inputs]]
        topic = "b/#"
        codec = "traccar"
        device_from = "payload"
        """,
        tmp_path,
    )
    assert settings.broker.url == "mqtts://broker.example"
    assert settings.adka.k_values == (9, 4)
    assert [i.codec for i in settings.inputs] == ["native", "traccar"]
    assert settings.tick == Settings().tick


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"[broker]\nport = '{SECRET}'", "gateway.toml: broker.port: there is no such"),
        ("[brokr]", "gateway.toml: brokr: there is no such"),
        (f"[http]\nport = '{SECRET}'", "gateway.toml: http.port: must be a whole number"),
        ("[http]\nport = 70000", "gateway.toml: http.port: "),
        ("[tick]\ninterval_s = 0", "gateway.toml: tick.interval_s: "),
        ("[tick]\ninterval_s = nan", "gateway.toml: tick.interval_s: "),
        ("[tick]\ninterval_s = inf", "gateway.toml: tick.interval_s: "),
        ("[broker]\npassword = 12345", "gateway.toml: broker.password: "),
        ("tick = 3", "gateway.toml: tick: "),
        ("inputs = []", "gateway.toml: inputs: "),
        ("[[inputs]]\ntopic = 'a/b'", "gateway.toml: inputs (no. 1): topic: {device} is needed"),
        ("[[inputs]]\ncodec = 'morse'", "gateway.toml: inputs (no. 1).codec: must be one of "),
        ("[adka]\nk_values = [2, 'x', 1]", "gateway.toml: adka.k_values (no. 2): "),
        ("[adka]\nk_floor = 1\n[tick]\nbeat = 1", "gateway.toml: tick.beat: there is no such"),
        ("[region]\nmode = 'magic'", 'gateway.toml: region.mode: must be "adka"'),
    ],
)
def test_a_mistake_is_one_line_that_names_file_and_key_and_no_value(
    text: str, said: str, tmp_path: Path
) -> None:
    assert complaint(text, tmp_path).startswith(said)


def test_of_many_mistakes_one_is_told_and_the_others_are_counted(tmp_path: Path) -> None:
    said = complaint("[http]\nport = -1\nhots = 'x'\n[log]\nlevel = 'loud'", tmp_path)
    assert said.startswith("gateway.toml: http.port: ")
    assert said.endswith("(and 2 more)")


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"none\.toml: cannot be read: No such file"):
        load_settings(tmp_path / "none.toml", {})


def test_a_file_that_is_not_toml_is_named_with_the_line(tmp_path: Path) -> None:
    said = complaint(f'[broker]\npassword = "{SECRET}\n', tmp_path)
    assert said.startswith("gateway.toml: is not TOML: ")
    assert "line 2" in said


def test_a_file_that_is_not_text_is_named(tmp_path: Path) -> None:
    path = tmp_path / "gateway.toml"
    path.write_bytes(b"\xc3\x28")
    with pytest.raises(SettingsError, match=r"gateway\.toml: is not UTF-8 text"):
        load_settings(path, {})


DIGITS = "9" * 5000
LONG_KEY = "k" * 10_000


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("zones = " + "[" * 100_000, "gateway.toml: is nested too deeply"),
        ("zones = " + "{a=" * 100_000, "gateway.toml: is nested too deeply"),
        (".".join("a" * 200_000) + " = 1", "gateway.toml: has a key of more than 32 levels"),
        ("[" + ".".join(["'a'"] * 99) + "]", "gateway.toml: has a key of more than 32 levels"),
        (f"[http]\nport = {DIGITS}", "gateway.toml: contains an integer of more than 64 bits"),
        (f"[adka]\nk_floor = 0x{DIGITS}", "gateway.toml: contains an integer of more than 64"),
        ("[adka]\nk_values = [9223372036854775808]", "gateway.toml: contains an integer of"),
        (f"x = '{'x' * 2_000_000}'", "gateway.toml: is larger than 1,048,576 bytes"),
        (f"# {'ä' * 600_000}", "gateway.toml: is larger than 1,048,576 bytes"),
        (f"{LONG_KEY} = 1", "gateway.toml: kkkk"),
        (f"x = {{{LONG_KEY} = 1, {LONG_KEY} = 1}}", "gateway.toml: is not TOML: Duplicate"),
        ('"a\\nb" = 1', "gateway.toml: a\\nb: there is no such"),
    ],
)
def test_what_is_nested_or_giant_is_refused_in_one_short_line(
    text: str, said: str, tmp_path: Path
) -> None:
    message = complaint(text, tmp_path)
    assert message.startswith(said)
    assert len(message) < 250


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("[" * 100_000, "ANONYMIZER__ZONES: is nested too deeply"),
        ("[{" + ".".join("a" * 100) + " = 1}]", "ANONYMIZER__ZONES: has a key of more than 32"),
        (DIGITS, "ANONYMIZER__ZONES: contains an integer of more than 64 bits"),
        ("x" * 2_000_000, "ANONYMIZER__ZONES: is larger than 1,048,576 bytes"),
    ],
)
def test_an_override_is_bounded_like_the_file(value: str, said: str, tmp_path: Path) -> None:
    message = complaint("", tmp_path, ANONYMIZER__ZONES=value)
    assert message.startswith(f"environment: {said}")


def test_an_override_of_many_levels_is_refused(tmp_path: Path) -> None:
    name = "__".join(["ANONYMIZER", *"A" * 500])
    message = complaint("", tmp_path, **{name: "1"})
    assert message.endswith(": has more than 32 levels")
    assert len(message) < 250


def test_dots_in_texts_and_comments_are_no_levels(tmp_path: Path) -> None:
    dots = "." * 100
    text = f"""# {dots}
        [http]  # {dots}
        token_file = '''{dots}'''
        host = '{dots}'
        """
    assert load(text, tmp_path).http.host == dots


def test_the_environment_overrides_the_file(tmp_path: Path) -> None:
    settings = load(
        "[http]\nport = 1\n[adka]\nk_floor = 3",
        tmp_path,
        ANONYMIZER__HTTP__PORT="2",
        ANONYMIZER__ADKA__K_VALUES="[12, 6, 3]",
        ANONYMIZER__HTTP__HOST="",
        ANONYMIZER__BROKER__URL="mqtts://elsewhere",
        ANONYMIZER__BROKER__VERSION="5",
        ANONYMIZER__INPUTS='[{topic = "x/{device}"}]',
        ANONYMIZER_DATA="no concern of ours",
        PATH="neither",
    )
    assert (settings.http.port, settings.http.enabled) == (2, False)
    assert (settings.adka.k_values, settings.adka.k_floor) == ((12, 6, 3), 3)
    assert (settings.broker.url, settings.broker.version) == ("mqtts://elsewhere", "5")
    assert [i.topic for i in settings.inputs] == ["x/{device}"]


@pytest.mark.parametrize("password", ["0123", "true", "[1, 2]", '"quoted"', "1979-05-27", ""])
def test_a_password_from_the_environment_is_taken_to_the_letter(password: str) -> None:
    settings = load_settings(None, {"ANONYMIZER__BROKER__PASSWORD": password})
    assert settings.broker.password is not None
    assert settings.broker.password.get_secret_value() == password
    assert "1979" not in repr(settings)
    assert "0123" not in repr(settings)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("ANONYMIZER__BROKER__ULR", SECRET, "environment: broker.ulr: there is no such"),
        ("ANONYMIZER__BROKR__URL", SECRET, "environment: brokr: there is no such"),
        ("ANONYMIZER__BROKER", SECRET, "environment: broker: "),
        ("ANONYMIZER__", SECRET, "environment: there is no such"),
        ("ANONYMIZER__HTTP__PORT", SECRET, "environment: http.port: "),
        ("ANONYMIZER__ADKA__K_VALUES", "[9, 'x', 1]", "environment: adka.k_values (no. 2): "),
        ("ANONYMIZER__ADKA__K_VALUES", "[9]", "environment: adka: k_values must have one value"),
        *(
            (name, SECRET, f"environment: {name}: did you mean ANONYMIZER__DEVICE_ZONES__TOPIC?")
            for name in ("ANONYMIZER_DEVICE_ZONES_TOPIC", "ANONYMIZER_DEVICE_ZONES__TOPIC")
        ),
        ("ANONYMIZER_INPUTS", SECRET, "environment: ANONYMIZER_INPUTS: did you mean ANONYMIZER__I"),
        ("ANONYMIZER_HTTP_PORT", "80", "environment: ANONYMIZER_HTTP_PORT: did you mean"),
        (
            "ANONYMIZER__HTTP__PORT__X",
            "1",
            "environment: ANONYMIZER__HTTP__PORT__X: port is not a table",
        ),
    ],
)
def test_a_mistake_in_the_environment_is_told_as_such(
    name: str, value: str, said: str, tmp_path: Path
) -> None:
    assert complaint("[http]\nport = 1", tmp_path, **{name: value}).startswith(said)


def test_variables_of_kubernetes_and_of_other_programs_are_no_mistakes() -> None:
    services = {
        "ANONYMIZER_SERVICE_HOST": "10.0.0.1",
        "ANONYMIZER_SERVICE_PORT": "80",
        "ANONYMIZER_PORT": "tcp://10.0.0.1:80",
        "ANONYMIZER_PORT_80_TCP_ADDR": "10.0.0.1",
        "ANONYMIZER_HTTP_PORT": "tcp://10.0.0.1:80",  # of a service anonymizer-http
    }
    assert load_settings(None, services | {"ANONYMIZER_DATA": "x"}) == Settings()


def test_a_mistake_in_the_file_is_not_laid_upon_the_environment(tmp_path: Path) -> None:
    said = complaint("[http]\nport = -1", tmp_path, ANONYMIZER__HTTP__HOST="::1")
    assert said.startswith("gateway.toml: http.port: ")


def test_options_override_both_and_are_named_as_such(tmp_path: Path) -> None:
    path = tmp_path / "gateway.toml"
    path.write_text("[http]\nport = 1")
    environment = {"ANONYMIZER__HTTP__PORT": "2"}
    assert load_settings(path, environment, {"http": {"port": 3}}).http.port == 3
    with pytest.raises(SettingsError, match=r"^options: region\.mode: "):
        load_settings(path, environment, {"region": {"mode": "x"}})
    path.write_text("region = 1")
    with pytest.raises(SettingsError, match=r"^options: region is not a table"):
        load_settings(path, {}, {"region": {"mode": "adka"}})
    with pytest.raises(SettingsError, match=r"^options: region is not a table"):
        load_settings(None, {}, {"region": 1})  # type: ignore[dict-item]


def test_a_program_that_names_no_environment_has_that_of_its_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ANONYMIZER__HTTP__PORT", "2")
    assert load_settings().http.port == 2


@given(st.text(alphabet=st.characters(blacklist_categories=["Cs"])))
def test_whatever_text_an_override_holds_it_is_taken_or_refused_in_one_line(text: str) -> None:
    for name in ("BROKER__URL", "TICK__INTERVAL_S", "INPUTS", "NETWORK__SOURCE"):
        try:
            load_settings(None, {f"ANONYMIZER__{name}": text})
        except SettingsError as error:
            assert str(error).startswith("environment: ")  # noqa: PT017  most texts are refused
            assert "\n" not in str(error)  # noqa: PT017  likewise
