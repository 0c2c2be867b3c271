"""Attacks: what an adversary tries on which evidence, what it is compared with, and its words.

An attack is mounted on a case: what was published, and what was true. It returns findings, whose
names are those of its *questions*: a question says which criterion it belongs to, which of the
figures are its success, its control and its bar, and which promise it tests. Audits, reports, the
watch, the experiment with adversaries and the page of attacks iterate over `registry`, and name no
attack.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Generic, TypeVar

from anonymizer.audit.findings import Figure, Finding, Mode

CaseT = TypeVar("CaseT")
NOTHING = "none"
"""What the control of something is that must never happen."""
ONE_IN_K = "a blind guess among those who look alike"
BLIND = "a blind guess"
WITHOUT, OTHERS = "without the release", "the release of another vehicle"
EVERY_MODE: tuple[Mode, ...] = ("adka", "snapshot", "session")


class Criterion(StrEnum):
    """What anonymous data must withstand, by the Article 29 Working Party [1]_, and truth.

    Singling out: can somebody be told apart from all others? Linkability: can two records be told
    to be of one person? Inference: can something be learned of a person who is not told apart?

    References
    ----------
    .. [1] Article 29 Working Party, Opinion 05/2014 on Anonymisation Techniques, WP 216, 2014.
    """

    SINGLING_OUT = "singling out"
    LINKABILITY = "linkability"
    INFERENCE = "inference"
    TRUTH = "truth"


class Subject(StrEnum):
    """What an attack reads."""

    POSITIONS = "positions"
    COUNTS = "counts and streets"
    WINDOWS = "records of a stream"
    RELEASES = "records of two streams"
    POSITIONS_AND_RECORDS = "positions and records"
    TABLE = "a table"


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryWords:
    """How a summary tells of a question."""

    question: str
    """What an adversary wants to know: `sound`, `k`, `who` or `where`."""
    words: str
    """The attack in words."""
    figure: str
    """What was found: a figure."""
    control: str | None = None
    """Figure that it stands beside; None: there is none."""
    is_lack: bool = False
    """Whether that figure is a share of failures."""


@dataclass(frozen=True, slots=True)
class Question:
    """What one kind of finding asks, and how its figures are read."""

    name: str
    """That of its findings; what follows a comma, a colon or a bracket there is left out."""
    criterion: Criterion
    """The question of a data protection officer to which it belongs."""
    asks: str
    """What the adversary tries, as a question."""
    success: tuple[str, ...] = ()
    """Figures that are shares or probabilities of success; the largest counts."""
    control: tuple[str, ...] = ()
    """Figures of the same attack where it can find nothing but chance; the largest counts."""
    n: str = ""
    """Figure with the number of trials."""
    exposed: str = ""
    """Figure of the most exposed: the success with the worst tenth, or the least in multiples of
    k."""
    exposed_control: str = ""
    """Figure that `exposed` is compared with, if it is a success."""
    chance: float | None = None
    """Success by chance, where it needs no figure."""
    against: str = "chance"
    """What the control is, in words."""
    bar: str = ""
    """What must hold, in words; empty: it is reported."""
    promised_by: tuple[Mode, ...] = ()
    """Modes of regions that promise it."""
    together: str = ""
    """Of an attack on two publications: what they are, as in "*both tables of* a stream"."""
    needs_map: bool = False
    """Whether it alone of its attack needs to know whose the pseudonyms are."""
    of_crowd: bool = False
    """Whether it tells of a crowd, and not of anybody in it."""
    control_finding: str = ""
    """The finding with the same attribute that is its control."""
    borrows: tuple[str, str] | None = None
    """The finding and its figure that are its control."""
    summary: SummaryWords | None = None
    """How a summary tells of it; None: not at all."""

    def at(self, figures: Mapping[str, Figure]) -> "Question":
        """Return the question about the longest time for which a short recording has figures."""
        for short, words in _LATER.items():
            at = replace(
                self,
                asks=self.asks.replace(_LATER["5min"], words),
                success=tuple(name.replace("5min", short) for name in self.success),
                control=tuple(name.replace("5min", short) for name in self.control),
                exposed=self.exposed.replace("5min", short),
                exposed_control=self.exposed_control.replace("5min", short),
            )
            if any(figures.get(name) is not None for name in at.success):
                return at
        return self


_LATER = {"5min": "five minutes", "3min": "three minutes", "1min": "one minute"}
"""Ages of a known position, in names of figures and in words; questions name the first."""


def name_of(finding: str) -> str:
    """Return the name of the question of a finding."""
    return re.split(r"[,:]| \(", finding, maxsplit=1)[0]


@dataclass(frozen=True, slots=True)
class Attack(Generic[CaseT]):
    """An attack."""

    name: str
    """Of the step of an audit."""
    reads: Subject
    """What it is mounted on."""
    mount: Callable[[CaseT], Iterable[Finding]]
    """Return what it finds in a case; nothing where there is nothing to attack."""
    questions: tuple[Question, ...]
    """One for each kind of finding."""
    needs_map: bool = False
    """Whether it needs to know whose the pseudonyms are."""
    applies: Callable[[CaseT], bool] = lambda _case: True
    """Whether there is anything to attack."""
    mount_in_short: Callable[[CaseT], Iterable[Finding]] | None = None
    """The same for a summary; None: a summary leaves it out."""


ALONE = " alone"
"""What findings on one of two publications are named by, behind the name of it."""
OF_ONE = Question(
    "alone",
    Criterion.INFERENCE,
    "What does one release tell by itself?",
    ("share_read",),
    n="n_vehicles",
    against=NOTHING,
)
"""The question of these findings."""
UNKNOWN = Question("", Criterion.INFERENCE, "An attack that this report does not know.")
"""That of an attack of somebody's own, which is shown among those that learn something."""
