"""The plan in docs/scaling.md, as measured: `python -m benchmarks.plan_page` writes it anew.

Everything between the heading *Plan* and the next bold paragraph is made here.
"""

import re
from pathlib import Path
from textwrap import fill

from benchmarks.plan import SIZES, Stored, compared, costs_of, plan_table, slices_table
from benchmarks.slices import BUSY, N_COPIES
from benchmarks.tables import Table, text_of

PAGE = Path(__file__).parents[1] / "docs" / "scaling.md"
_MADE = re.compile(
    r"(?<=^## Plan\n\n).*?(?=^\*\*The busiest district\*\*)", re.DOTALL | re.MULTILINE
)
_PLAN = {
    "devices": "devices",
    "bridges": "bridges",
    "workers": "workers",
    "sources": "sources",
    "districts": "districts",
    "brokers": "brokers of 4 cores",
    "cores in all": "cores used in all",
    "into Kafka, Gbit/s": "into Kafka, Gbit/s",
    "disk, TB": "disk, TB",
    "workers' memory, GiB": "workers' memory, GiB",
}
_SLICES = (
    "positions a message",
    "bridges, µs",
    "workers, µs",
    "Kafka, µs",
    "Mosquitto, µs",
    "cores used",
    "cores to have",
)


def made() -> str:
    """Return what the page says about the plan."""
    stored = Stored.read()
    costs = costs_of(stored)
    off = max(abs(each.error) for each in compared(stored, costs))
    slices = slices_table(costs, stored)
    rates = " and ".join(
        f"{row[2]:,}/s less {row[1]:,}/s" if row[1] else f"{row[2]:,}/s" for row in slices.rows
    )
    busy = f"{_percent(BUSY)} busy"
    return "\n\n".join(
        (
            _paragraph(
                "`python -m benchmarks plan` estimates what a fleet needs, CPU off by at most"
                f" {_percent(off)} with twice the workers it learned from (for your machines, first"
                " `python -m benchmarks stages cluster --json benchmarks/cluster.json`)."
                " For devices that report once a second,"
                f" with one core a worker or bridge that is {busy}:"
            ),
            _shown(plan_table(costs, stored, SIZES), _PLAN),
            _paragraph(
                f"Disk is one hour of the topics, in {N_COPIES} replicas, which take"
                f" {stored.copying:.1f} times the CPU of one (a follower {stored.follower:.2f}"
                " times its leader's). MQTT brokers take"
                f" {costs.given_s['broker'] * 1e6:.0f} µs a position, which *in all* includes."
                " Networks between machines, and roads of a whole nation (555 bytes a node),"
                " were not measured."
            ),
            _paragraph(
                f"A slice of one worker ({rates}), and what a million takes by it, with"
                f" {N_COPIES} replicas (to have: {busy}):"
            ),
            _shown(slices, {name: name for name in _SLICES}),
            "",
        )
    )


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _paragraph(text: str) -> str:
    return fill(text, 150, break_long_words=False, break_on_hyphens=False)


def written(page: str) -> str:
    """Return the page with the plan made anew.

    Raises
    ------
    ValueError
        If the page has no place for it.
    """
    found, n = _MADE.subn(lambda _: made(), page)
    if n != 1:
        raise ValueError(f"{PAGE.name} has no heading Plan, or nothing about the busiest district")
    return found


def _shown(table: Table, name_of: dict[str, str]) -> str:
    """Return some columns as Markdown, by the names that the page has for them."""
    at = [table.columns.index(column) for column in name_of]
    rows = [list(name_of.values()), *([text_of(row[i]) for i in at] for row in table.rows)]
    head, *rest = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join((head, "|---" * len(at) + "|", *rest))


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
