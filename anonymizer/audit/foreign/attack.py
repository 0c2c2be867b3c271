"""An attack on a release of others, what its trials say, and how surely.

Each person is tried several times, with other days or other known places. The *control* is the
same attack where it can find nothing but chance, of the same persons.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from anonymizer.audit.foreign.release import AnyRelease, ForeignCase
from anonymizer.domain.arrays import FloatArray

_N_BOOTSTRAP = 2000
_LEVEL = 0.99
"""Of the intervals. There are several attacks: with 95 %, one in five reports would err."""
FEWEST = 5
"""Persons below which nothing is said."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Trials:
    """What an attack found, by person and trial."""

    success: FloatArray
    control: FloatArray
    """`success`, `control`: probability that a trial finds what it looks for, both of shape
    (persons, trials)."""
    note: str = ""
    """What there is to say about it besides."""
    found: str = ""
    """What was found instead of what the attack says, as where nobody knows the truth."""


@dataclass(frozen=True, slots=True)
class NotMounted:
    """Why an attack was not mounted."""

    reason: str


@dataclass(frozen=True, slots=True)
class ForeignAttack:
    """An attack on a form of release."""

    name: str
    """In few words."""
    needs: type[AnyRelease]
    """The form on which it is mounted."""
    mount: Callable[[ForeignCase], Trials | NotMounted]
    """Return its trials in a case, or why there are none."""
    found: str
    """What it found, as the end of a sentence that begins with "of 40 people, 12 ..."."""
    against: str
    """What the control is, as the end of "against 3 % ..."."""
    asks: str
    """What the attacker tries, as a question."""
    who: str = "people"
    """What its trials are of, as in the sentence."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the trials of an attack say."""

    attack: str
    """Its name."""
    n: int
    """Number of persons."""
    success: float
    low: float
    high: float
    """`success`, `low`, `high`: share of the trials that succeed, and its interval of 99 %."""
    control: float
    """The same of the control."""
    gain_low: float
    """Least that the success is above the control, at 99 %, negative if it may be below."""
    worst: float
    worst_control: float
    """`worst`, `worst_control`: success of the most exposed tenth of persons, and that of the
    control's own tenth."""
    sentence: str
    """All of it in plain words."""
    asks: str
    note: str = ""
    """`asks`, `note`: what the attacker tries; what there is to say besides."""

    @property
    def broken(self) -> bool:
        """Whether the attack finds more than its control, beyond chance."""
        return self.gain_low > 0


def judged(attack: ForeignAttack, trials: Trials, *, seed: int) -> Verdict:
    """Return what trials say, with intervals by bootstrap over persons.

    Notes
    -----
    One person more is drawn whose success is that of the control: few persons who are all found
    leave a doubt as large as they are few. The most exposed tenth is chosen by every other trial
    and judged by the rest, where there are two.
    """
    success, control = trials.success.mean(axis=1), trials.control.mean(axis=1)
    n, chance = len(success), float(control.mean())
    rng = np.random.default_rng(seed)
    drawn = rng.integers(0, n + 1, (_N_BOOTSTRAP, n))
    of_all = np.append(success, chance)[drawn].mean(axis=1)
    gain = np.append(success - control, 0.0)[drawn].mean(axis=1)
    tail = (1 - _LEVEL) / 2
    low, high = np.quantile(of_all, [tail, 1 - tail])
    mean = float(success.mean())
    verdict = Verdict(
        attack.name,
        n,
        mean,
        min(float(low), mean),
        max(float(high), mean),
        chance,
        float(np.quantile(gain, tail)),
        _most_exposed(trials.success),
        _most_exposed(trials.control),
        "",
        attack.asks,
        trials.note,
    )
    return _with_sentence(verdict, attack, trials.found or attack.found)


def _most_exposed(success: FloatArray) -> float:
    """Return the mean of the tenth with the largest success, shape (persons, trials)."""
    chosen, judging = success[:, ::2], success[:, 1::2]
    if not judging.shape[1]:
        judging = chosen
    n = max(1, len(success) // 10)
    tenth = np.argsort(-chosen.mean(axis=1), kind="stable")[:n]
    return float(judging[tenth].mean())


def _with_sentence(verdict: Verdict, attack: ForeignAttack, found: str) -> Verdict:
    share = f"{verdict.success:.0%}"
    between = f"between {verdict.low:.0%} and {verdict.high:.0%} with 99 % certainty"
    control = f"against {verdict.control:.0%} {attack.against}"
    if verdict.broken:
        said = f"Of {verdict.n:,} {attack.who}, {share} {found} ({between}), {control}."
    else:
        said = f"Nothing beyond chance: of {verdict.n:,} {attack.who}, {share} {found}"
        said += f", {control}."
    return replace(verdict, sentence=said)
