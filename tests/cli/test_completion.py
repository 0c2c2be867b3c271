"""A shell completes what can have a few values."""

import pytest

from tests.cli.support import process


@pytest.mark.parametrize(
    ("words", "values"),
    [
        ("init --mode", "adka session snapshot"),
        ("init --codec", "owntracks senml traccar"),
        ("cloak --region", "adka session snapshot"),
        ("audit stream --mode", "adka session snapshot"),
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
    told = process(
        environment={
            "_ANONYMIZER_COMPLETE": "complete_bash",
            "COMP_WORDS": f"anonymizer {words} ",
            "COMP_CWORD": str(1 + len(words.split())),
        }
    )
    assert set(values.split()) <= set(told.stdout.split())
