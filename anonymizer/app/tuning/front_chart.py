"""Plot of a search: the cost of privacy, the front and the recommendation."""

from collections.abc import Callable, Sequence
from typing import Any, BinaryIO

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator, PercentFormatter

from anonymizer.app.plots import BLUE, INK, LIGHT, ORANGE, RED, png
from anonymizer.app.tuning.tune_report import EvaluatedTrial, TuneReport, differs


def draw_front(file: BinaryIO, report: TuneReport) -> None:
    """Draw score (without a target: loss) over deletion and over k times l.

    Grey points are outside the bounds, blue ones within; points of the front have a ring, and the
    recommended one is red. Bars are standard errors of scores. Deletion is left out if it is the
    same in all.
    """
    trials = [trial for trial in report.trials if trial.state == "tried" and trial.n_classes]
    both = differs(trials, "deletion")
    with png(file, width_in=10 if both else 6, height_in=4.4) as figure:
        plots = figure.subplots(1, 1 + both, sharey=True, squeeze=False)[0]
        over_privacy = plots[-1]
        if both:
            _over_deletion(plots[0], report, trials)
        plots[0].set_ylabel(
            "information loss (GCP)" if report.target is None else "score of a model"
        )
        _points(
            over_privacy,
            report,
            trials,
            lambda trial: trial.configuration.k * trial.configuration.l,
        )
        over_privacy.set_xlabel("k times l")
        if trials:  # an empty plot has no logarithmic scale
            over_privacy.set_xscale("log", base=2)
        over_privacy.xaxis.set_major_formatter(lambda x, _at: f"{x:g}")
        whose = "" if both else f" for {report.name}"
        over_privacy.set_title(f"What privacy costs{whose}", parse_math=False)
        for axes in plots:
            axes.yaxis.set_major_locator(MaxNLocator(6))
        figure.legend(
            *over_privacy.get_legend_handles_labels(),
            loc="outside lower center",
            ncols=6 if both else 3,
        )


def _over_deletion(axes: Axes, report: TuneReport, trials: Sequence[EvaluatedTrial]) -> None:
    _points(axes, report, trials, lambda trial: trial.deletion)
    axes.axvline(report.max_deletion, color=INK, linewidth=0.8, linestyle=":")
    axes.set_xlabel("records suppressed")
    axes.xaxis.set_major_formatter(PercentFormatter(1))
    axes.set_xlim(left=-0.002)
    axes.set_title(f"What is affordable for {report.name}", parse_math=False)


def _points(
    axes: Axes,
    report: TuneReport,
    trials: Sequence[EvaluatedTrial],
    x_of: Callable[[EvaluatedTrial], float],
) -> None:
    def draw(chosen: list[EvaluatedTrial], label: str, **look: Any) -> None:  # noqa: ANN401  matplotlib's
        xs = [x_of(trial) for trial in chosen]
        axes.scatter(xs, [_y(trial) for trial in chosen], label=label, **look)

    errors = [trial.score_error for trial in trials]
    if any(errors):
        axes.errorbar(
            [x_of(trial) for trial in trials], [_y(trial) for trial in trials],
            [error or 0.0 for error in errors], fmt="none", ecolor=LIGHT, elinewidth=0.8, zorder=0,
        )  # fmt: skip
    outside = [t for t in trials if not (t.within or t.undecided)]
    draw(outside, "outside the bounds", s=16, color=LIGHT)
    if undecided := [t for t in trials if t.undecided]:
        draw(undecided, "undecided: within the error", s=16, color=ORANGE)
    draw([t for t in trials if t.within], "within", s=16, color=BLUE)
    ring = {"facecolors": "none", "edgecolors": INK, "linewidths": 0.8}
    draw([t for t in trials if t.front], "front", s=46, **ring)
    draw([t for t in trials if t.recommended], "recommended", s=70, color=RED, marker="D")
    if report.original_score is not None:
        label = "with the original records"
        axes.axhline(report.original_score, color=INK, linewidth=0.8, label=label)
    if report.min_score is not None:
        label = "required score"
        axes.axhline(report.min_score, color=INK, linewidth=0.8, linestyle=":", label=label)


def _y(trial: EvaluatedTrial) -> float:
    return trial.gcp if trial.score is None else trial.score
