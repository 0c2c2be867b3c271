"""A shell completes what can have a few values."""

import pytest

from tests.cli.support import anonymizer, process


def asked(words: str) -> dict[str, str]:
    """Return the environment in which a shell asks for what may stand in place of the last word."""
    return {
        "_ANONYMIZER_COMPLETE": "complete_bash",
        "COMP_WORDS": f"anonymizer {words}",
        "COMP_CWORD": str(len(words.split(" "))),
    }


@pytest.mark.parametrize(
    ("words", "values"),
    [
        ("init --codec", "owntracks senml traccar"),
        ("anonymize --model", "kd kld kaca cells"),
        ("anonymize --method", "best mondrian fast tree"),
        ("tune --model", "kd kld kaca cells"),
        ("connect", "owntracks traccar kafka"),
        ("connect --reader", "public own"),
        ("connect --codec", "owntracks senml traccar"),
        ("experiment frontier --format", "png svg pdf"),
    ],
)
def test_a_shell_is_told_the_values_of_an_option(words: str, values: str) -> None:
    told = anonymizer(environment=asked(f"{words} "))
    assert set(values.split()) <= set(told.stdout.split())


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("init --mode ", {"adka", "snapshot", "session"}),
        ("init --codec h", {"hfp", "home_assistant"}),
        ("cloak --region ", {"adka", "snapshot", "session"}),
        ("cloak --region s", {"snapshot", "session"}),
        ("audit stream --mode a", {"adka"}),
        ("anonymize --method m", {"mondrian"}),
        ("anonymize --model k", {"kd", "kld", "kaca"}),
    ],
)
def test_a_shell_completes_the_names_that_an_option_takes(words: str, offered: set[str]) -> None:
    assert set(anonymizer(environment=asked(words)).stdout.split()) == offered


def test_a_process_completes_as_this_one_does() -> None:
    environment = asked("init --codec h")
    assert process(environment=environment).stdout == anonymizer(environment=environment).stdout
