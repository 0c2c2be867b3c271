"""HTML page for analysts: how good a release is for counting, by the size of the cells."""

from collections.abc import Mapping
from html import escape
from math import isnan

from anonymizer.audit.evidence.evidence_page import framed

_TITLE = "What can be counted with this release"
_COLUMNS = {
    "coverage": "squares with devices",
    "density_error": "devices in a wrong one",
    "flow_error": "moves that are wrong",
}
_NOTES = """\
All of this is expected from the release itself: nobody's true position was used.
A move is wrong if it is shown between other squares than it was, or not at all, within half a \
minute. Only devices that keep their pseudonym for so long are followed.
How many devices are not published, a release does not say: ask the operator.
Larger squares are counted better. Where devices gather in a part of a region, all counts share \
the error, and it does not average out over time.""".splitlines()


def quality_page(quality: Mapping[float, Mapping[str, float]], *, made: str, release: str) -> str:
    """Return the page as HTML.

    Parameters
    ----------
    quality
        By the size of square cells in metres: the fields of `anonymizer.client.Quality`.
    made
        When it was made (ISO 8601).
    release
        Name of the file of the release.
    """
    size_m, first = next(iter(quality.items()))
    rows = "".join(
        f"<tr><td>{each:,.0f} m</td>"
        + "".join(f"<td class=n>{_percent(found[name])}</td>" for name in _COLUMNS)
        + "</tr>"
        for each, found in quality.items()
    )
    heads = "".join(f"<th scope=col>{each}</th>" for each in ("squares", *_COLUMNS.values()))
    age = (
        f"{first['devices']:,.0f} devices are published at a time. What is known of one is "
        f"{first['age_mean_s']:.0f} s old on average, and of 19 in 20 at most "
        f"{first['age_p95_s']:.0f} s."
    )
    parts = [
        f"<h1>{_TITLE}</h1><p>{escape(release)}, {escape(made)}.</p>",
        f'<p class="answer">{_right(first["density_error"], size_m)}</p>',
        f"<p>{age}{_speed(first['speed_error'])}</p>",
        f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>",
        f"<h2>How to read this</h2><ul>{''.join(f'<li>{each}</li>' for each in _NOTES)}</ul>",
    ]
    return framed(_TITLE, parts)


def _right(wrong: float, size_m: float) -> str:
    if isnan(wrong):
        return "No device is published at the moments that were looked at."
    return (
        f"In squares of {size_m:,.0f} m, expect {100 - 100 * wrong:.0f} of 100 devices to be "
        "counted in the right one."
    )


def _speed(error: float) -> str:
    if isnan(error):
        return " No speed is published with a spread."
    return f" The speed of a device differs by {error:.1f} m/s from the mean shown for its road."


def _percent(share: float) -> str:
    return "not known" if isnan(share) else f"{share:.0%}"
