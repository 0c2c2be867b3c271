"""The models of releases of records by name, and what help and settings say of all of them."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from anonymizer.algorithms.models import MODULES
from anonymizer.algorithms.models.model import MadeOf, Model

MODELS: Mapping[str, Model] = {
    each.name: each for each in (import_module(module).MODEL for module in MODULES)
}
"""By the name in options and settings."""
USUAL = next(iter(MODELS))
"""Where nothing is said."""


def named(has: Callable[[Model], Any], *, mark: str = "") -> str:
    """Return the names of the models that have something, such as `kd and kld`."""
    names = [f"{mark}{each.name}{mark}" for each in MODELS.values() if has(each)]
    return " and ".join([", ".join(names[:-1]), *names[-1:]] if names[1:] else names)


def told(text_of: Callable[[Model], str], *, mark: str = "") -> str:
    """Return what there is to say of each model, of those of which the same is once."""
    texts = dict.fromkeys(map(text_of, MODELS.values()))
    return " ".join(
        f"Of {named(lambda each, text=text: text_of(each) == text, mark=mark)}: {text}"  # type: ignore[misc]
        for text in texts
    )


LEARNING = named(lambda each: each.formed is MadeOf.CELLS)
LABELLED = named(lambda each: each.has_labels)
"""The models that follow a target, and those of which the user chooses labels, as words."""
