"""Tables that `anonymizer tune` prints."""

from collections.abc import Callable, Mapping, Sequence

from rich.console import Console

from anonymizer.app.tuning.search import Tuned
from anonymizer.app.tuning.tune_report import EvaluatedTrial, Figure, TuneReport, differs
from anonymizer.narrow_tables import print_table

_SHOWN = 12
"""Rows of the table."""


def print_results(console: Console, tuned: Tuned) -> None:
    """Print the best trials within the bounds, the scores and the notes."""
    report = tuned.report
    within, best = report.within, report.recommended
    shown = list(within[:_SHOWN])
    if best is not None and best not in shown:
        shown = [*shown[:-1], best]
    constant = _constant(report)
    figures = {name: show for name, (_, show) in _FIGURES.items() if name not in constant}
    _print_trials(console, shown, figures)
    if told := ", ".join(f"{name} {value}" for name, value in constant.items() if value != "-"):
        console.print(f"the same in all of them: {told}", highlight=False)
    more = f", {len(shown)} of them above" if len(within) > len(shown) else ""
    console.print(
        f"{len(within):,} of {len(report.trials):,} configurations are within the bounds{more}",
        highlight=False,
    )
    if report.original_score is not None and report.min_score is not None:
        console.print(
            f"score{' (R²)' if report.is_regression else ''} with the original records "
            f"{_with_error(report.original_score, report.original_error)}, "
            f"of guessing {report.guessing_score:.4f}, required {report.min_score:.4f}",
            highlight=False,
            soft_wrap=True,
        )
        console.print(_how_sure(report), highlight=False, soft_wrap=True)
    if report.n_unstated:
        console.print(
            f"note: {report.n_unstated:,} records have no {report.target}: they are in the "
            "release, and neither train nor test a model",
            markup=False,
            highlight=False,
            soft_wrap=True,
        )
    for reason, n in report.left_out.items():
        console.print(f"note: left out, {reason.replace('_', ' ')}: {n:,}", highlight=False)
    if n := sum(trial.state == "no_time" for trial in report.trials):
        console.print(
            f"note: {n:,} configurations had no time: start the command again to continue, or give "
            "it a longer --time-budget",
            highlight=False,
            soft_wrap=True,
        )
    if report.n_guessing:
        console.print(
            f"note: {report.n_guessing:,} configurations predict {report.target} no better than "
            "guessing, and are not recommended" + _hopeless(report),
            markup=False,
            highlight=False,
            soft_wrap=True,
        )
    if best is None:
        console.print("note: none is recommended: relax the bounds, or see results.csv")
    if tuned.why_no_setting is not None:
        note = "note: no settings are written, "
        console.print(note + tuned.why_no_setting, markup=False, highlight=False, soft_wrap=True)
    written = ", ".join(str(path) for path in tuned.files)
    console.print(f"written: {written}", markup=False, highlight=False, soft_wrap=True)


def _hopeless(report: TuneReport) -> str:
    """Return what a score tells that is not reached with the original records, either."""
    original, guessing = report.original_score, report.guessing_score
    if original is None or guessing is None or original > guessing:
        return ""
    kind = "" if report.is_regression else "; if the target holds numbers, say --target-kind number"
    return f": nor do the original records; try other quasi-identifiers or another model{kind}"


def _how_sure(report: TuneReport) -> str:
    """Return how scores were measured, and what a choice may rest on."""
    validation = report.validation
    if validation is None:
        return (
            f"± is the standard error on {report.n_judged:,} records held out once: it does not "
            "enter the choice; --folds decides by cross-validation"
        )
    return (
        f"± is the standard error over {validation.folds} folds, {validation.repeats} times: a "
        "difference within it decides nothing. "
        f"{len(report.undecided):,} configurations differ from the required score by less, and "
        "are neither recommended nor ruled out"
    )


def _constant(report: TuneReport) -> dict[str, str]:
    """Return the columns that would say the same in every row, and what."""
    within = report.within
    return {
        name: show(within[0])
        for name, (figure, show) in _FIGURES.items()
        if not differs(within, figure)
    }


def _print_trials(
    console: Console,
    trials: Sequence[EvaluatedTrial],
    figures: Mapping[str, Callable[[EvaluatedTrial], str]],
) -> None:
    some_lack = any(trial.configuration.without for trial in trials)
    headings = ["", "model", *["without"] * some_lack, "k", "d", "l", *figures]
    cells = []
    for trial in trials:
        promised = trial.configuration
        cells.append(
            [
                "recommended" if trial.recommended else "front" if trial.front else "",
                promised.model,
                *[", ".join(promised.without)] * some_lack,
                str(promised.k),
                str(promised.d),
                str(promised.l),
                *[figure(trial) for figure in figures.values()],
            ]
        )
    print_table(console, "", headings, cells, words={"", "model", "without"})


def _with_error(score: float | None, error: float | None) -> str:
    return "-" if score is None else f"{score:.4f}" + (f" ± {error:.4f}" if error else "")


def _share(of: float | None) -> str:
    return "-" if of is None else f"{of:.2%}"


_FIGURES: dict[str, tuple[Figure, Callable[[EvaluatedTrial], str]]] = {
    "deleted": ("deletion", lambda trial: "none" if trial.lossless else f"{trial.deletion:.2%}"),
    "GCP": ("gcp", lambda trial: f"{trial.gcp:.4f}"),
    "score": ("score", lambda trial: _with_error(trial.score, trial.score_error)),
    "linked": ("linked", lambda trial: _share(trial.linked)),
    "alike": ("homogeneous", lambda trial: _share(trial.homogeneous)),
}
"""The measured columns of the table: what they show, and how."""
