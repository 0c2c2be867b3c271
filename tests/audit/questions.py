"""The questions of all attacks."""

from anonymizer.audit.attack import Question
from anonymizer.audit.registry import every_attack


def every_question() -> list[Question]:
    """Return the questions of all attacks, each once."""
    return list(dict.fromkeys(each for attack in every_attack() for each in attack.questions))
