"""The page for analysts: what its first sentence says, and whether it fits and can be read."""

import re
from pathlib import Path

from anonymizer.audit.evidence.quality_page import quality_page
from tests.audit.evidence.test_evidence_page import NARROW, WIDE
from tests.web.browsing import opened_browser

FINE = {
    "devices": 317.0, "coverage": 0.75, "age_mean_s": 21.7, "age_p95_s": 46.5,
    "density_error": 0.35, "flow_error": float("nan"), "speed_error": float("nan"),
}  # fmt: skip
COARSE = FINE | {"coverage": 0.83, "density_error": 0.15, "flow_error": 0.2, "speed_error": 2.5}


def made(*sizes: dict[str, float]) -> str:
    cells = dict(zip((600.0, 1500.0), sizes, strict=False))
    return quality_page(cells, made="2026-01-01T00:00:00+00:00", release="<taxis>.jsonl")


def test_the_first_sentence_says_how_many_are_counted_right() -> None:
    html = made(FINE, COARSE)
    assert "In squares of 600 m, expect 65 of 100 devices to be counted in the right one." in html
    assert "22 s old on average, and of 19 in 20 at most 46 s. No speed is published" in html
    rows = re.findall(r"<td>([\d,]+) m</td>(.*?)</tr>", html)
    assert [(size, re.findall(r">([^<>]+)</td>", cells)) for size, cells in rows] == [
        ("600", ["75%", "35%", "not known"]),
        ("1,500", ["83%", "15%", "20%"]),
    ]
    assert "<taxis>" not in html
    assert "differs by 2.5 m/s" in made(COARSE)
    assert "No device is published" in made(FINE | {"density_error": float("nan")})


def test_the_page_fits_screens_and_nothing_complains(tmp_path: Path) -> None:
    path = tmp_path / "quality.html"
    path.write_text(made(FINE, COARSE))
    with opened_browser() as viewer:
        viewer.open(path.as_uri())
        for width in (NARROW, WIDE):
            viewer.screen(width, 900, mobile=width == NARROW)
            assert viewer.script("return document.documentElement.scrollWidth") == width
        assert viewer.complaints() == []
        assert all(url.startswith("file:") for url in viewer.asked())
