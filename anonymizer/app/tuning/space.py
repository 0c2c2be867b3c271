"""Grid of the configurations that a search tries."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from pydantic import BaseModel, ConfigDict

from anonymizer.algorithms.models.cells import MODEL as CELLS
from anonymizer.algorithms.models.registry import MODELS, named
from anonymizer.errors import SettingsError

Names: TypeAlias = tuple[str, ...]

_MOST_TRIED = 100_000
"""Most numbers in a range."""
MINIMIZER = "minimizer"
"""Beside the models of releases: rows generalized as far as the user's own model keeps its score,
see `minimized`."""
_KINDS = {**MODELS, MINIMIZER: replace(CELLS, name=MINIMIZER, methods={})}


class Configuration(BaseModel):
    """A promise and its model.

    `without` are quasi-identifiers that are left out of the release.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: str
    k: int
    d: int
    l: int  # noqa: E741  the field's name for it
    without: Names = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """A grid of configurations."""

    models: Sequence[str]
    """Names in `MODELS`, and `MINIMIZER`."""
    k: Sequence[int]
    """Each 2 or more."""
    l: Sequence[int] = ()  # noqa: E741  the field's name for it
    """Empty: from 1 to k. Values above k are not tried."""
    d: Sequence[int] = ()
    """Empty: the default of each model, or `least_d` if that is more."""
    without: Sequence[Names] = ((),)
    """Sets of quasi-identifiers to leave out; the empty tuple leaves out none."""
    least_d: int = 1
    """2 for a stream that keeps lasting attributes over windows, which a d of 1 cannot."""

    def configurations(self, *, sensitive: bool) -> list[Configuration]:
        """Return the configurations of the grid, without duplicates.

        `sensitive`: whether there is a sensitive attribute. Without one, l is 1.

        Raises `SettingsError` if a model is unknown, or there is nothing to try.
        """
        if astray := [model for model in self.models if model not in _KINDS]:
            raise SettingsError(f"model: {astray[0]}: must be one of {', '.join(_KINDS)}")
        if any(number < 1 for number in (*self.l, *self.d)) or any(k < 2 for k in self.k):
            raise SettingsError("k is at least 2, d and l are at least 1")
        if any(d < self.least_d for d in self.d):
            raise SettingsError(
                f"d: must be {self.least_d} or more: the stream keeps lasting attributes over"
                ' windows, unless it says cumulative = "report"'
            )
        if not sensitive and any(number > 1 for number in self.l):
            raise SettingsError("l: requires a sensitive attribute")
        found = list(
            dict.fromkeys(
                Configuration(model=model, k=k, d=d, l=diverse, without=without)
                for model in self.models
                for without in self.without
                for d in self.d or (self._least_d(model),)
                for k in self.k
                for diverse in self._l(model, k, sensitive=sensitive)
            )
        )
        if not found:
            raise SettingsError(
                "there is no configuration to try: l is at most k, and 2 or more with"
                f" {named(lambda each: each.l > 1)}"
            )
        return found

    def _least_d(self, model: str) -> int:
        return _KINDS[model].d if model == MINIMIZER else max(_KINDS[model].d, self.least_d)

    def _l(self, model: str, k: int, *, sensitive: bool) -> Iterator[int]:
        if not sensitive or "l" not in _KINDS[model].promises:
            if sensitive or not _KINDS[model].needs_sensitive:
                yield 1
            return
        least = _KINDS[model].l
        for diverse in self.l or range(1, k + 1):
            if least <= diverse <= k:
                yield diverse


def numbers(option: str, text: str) -> list[int]:
    """Return the numbers of LO:HI, LO:HI:STEP or A,B,C, rising.

    Raises `SettingsError` naming the option, if the text is none of these or has too many numbers.
    """
    try:
        if ":" not in text:
            return sorted({int(each) for each in text.split(",")})
        parts = [int(each) for each in text.split(":")]
    except ValueError:
        parts = []
    if not 2 <= len(parts) <= 3 or parts[0] > parts[1] or (parts[2:] and parts[2] < 1):
        raise SettingsError(f"{option}: must be LO:HI, LO:HI:STEP, or numbers separated by commas")
    found = range(parts[0], parts[1] + 1, *parts[2:])
    if len(found) > _MOST_TRIED:
        raise SettingsError(f"{option}: more than {_MOST_TRIED:,} numbers")
    return list(found)
