"""All kinds of reports, made and looked at: `python -m tests.audit.evidence.showing FOLDER`.

Makes releases of real taxis, of a small fleet, of Adult, of a stream of records, and some that are
broken on purpose, has each audited and reported, photographs the reports in Chromium on a wide and
a narrow screen, light and dark, and prints what their first screens say. `--axe axe.min.js` (of
npm's `axe-core`) also counts faults of accessibility. It needs ANONYMIZER_DATA, and most of an
hour; what is there already is not made again. Most of the time is that of `tracking`, which reads
every region against the tracks of all devices: `--devices 100` makes it short, and the reports say
how many devices they are about.
"""

import argparse
import csv
import gzip
import os
import subprocess
import sys
from collections.abc import Iterator
from io import TextIOWrapper
from itertools import chain, product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import polars as pl

from anonymizer.audit.evidence import Criterion, EvidenceReport, evidence_of, page
from anonymizer.audit.evidence.evidence_words import ANSWERS
from tests.app.gateway.records import write_records_settings
from tests.audit.evidence.test_broken_releases import BROKEN
from tests.audit.test_windows_audit import recorded, write
from tests.end_to_end import ANONYMIZER
from tests.web.browsing import Viewer, opened_browser

SCREENS = {"wide": (1280, 900), "narrow": (390, 844)}
SCHEMES = ("light", "dark")
_DAY = 1_211_266_800
"""Midnight of 2008-05-20 in San Francisco."""
_NINE = _DAY + 9 * 3600
_QIS = ("age", "workclass", "education", "marital-status", "race", "sex", "native-country")
_MODELS = {
    "kd": ("--model", "kd", "-k", "20", "-d", "2"),
    "kld": ("--model", "kld", "-k", "20", "-l", "3"),
    "kaca": ("--model", "kaca", "-k", "20"),
    "cells": ("--model", "cells", "-k", "20", "-l", "2"),
    "kld with t": ("--model", "kld", "-k", "20", "-l", "3", "--t", "0.3"),
}


class Show(NamedTuple):
    """A report, and the files of its audits."""

    name: str
    audits: list[Path]


def _run(*words: object) -> None:
    """Run a command of ours; exit code 1 says that a promise is broken, which is to be shown."""
    done = subprocess.run(
        [ANONYMIZER, *map(str, words)], check=False, capture_output=True, text=True
    )
    if done.returncode not in {0, 1}:
        sys.exit(f"{' '.join(map(str, words))}\n{done.stderr}")


def _positions(folder: Path, name: str, trace: Path, network: str, mode: str) -> Show:
    out = [folder / f"{name} {part}" for part in ("pub.jsonl", "map.jsonl", "audit.json")]
    seeded = ("--network", network, "--auditor-map", out[1], "--seed", 7)
    if not out[0].exists():
        _run("cloak", trace, "--region", mode, "--out", out[0], *seeded)
    if not out[2].exists():
        _run(
            *("audit", "stream", trace, out[0], "--all", "--network", network),
            *("--auditor-map", out[1]),
            *("--mode", mode, "--json", out[2]),
        )
    return Show(name, [out[2]])


def taxis(folder: Path, data: Path, minutes: float, n_devices: int | None) -> Iterator[Show]:
    """Yield some time of taxis by day, in each mode, and a small fleet; None: all of them."""
    city = pl.read_parquet(data / "traces" / "cabspotting_sf_2008-05-19_20.parquet").filter(
        pl.col("ts").is_between(_NINE, _NINE + 60 * minutes)
        & pl.col("lat").is_between(37.69, 37.84)
        & pl.col("lon").is_between(-122.53, -122.35)
    )
    ids = sorted(city["device_id"].unique().to_list())
    for name, chosen in (("taxis", ids[:n_devices]), ("few", ids[:25])):
        rows = city.filter(pl.col("device_id").is_in(chosen))
        rows.write_parquet(folder / f"{name}.parquet")
    network = str(data / "networks" / "san_francisco")
    yield _positions(folder, "25 taxis session", folder / "few.parquet", network, "session")
    for mode in ("session", "snapshot", "adka"):
        yield _positions(folder, f"taxis {mode}", folder / "taxis.parquet", network, mode)


def adult(folder: Path, data: Path) -> Iterator[Show]:
    """Yield Adult under each model."""
    table = folder / "adult.csv"
    with (
        gzip.open(data / "adult" / "adult_arx_30162.csv.gz", "rb") as packed,
        table.open("w", newline="") as text,
    ):
        csv.writer(text).writerows(csv.reader(TextIOWrapper(packed), delimiter=","))
    for name, model in _MODELS.items():
        made = [folder / f"adult {name} {part}" for part in ("out.csv", "map.csv", "audit.json")]
        columns = ("--qi", ",".join(_QIS), "--sa", "occupation")
        if not made[2].exists():
            _run("anonymize", table, *columns, *model, "--auditor-map", made[1], "--out", made[0])
            _run(
                *("audit", "table", table, made[0], "--auditor-map", made[1], *columns, *model[2:]),
                *("--json", made[2]),
            )
        yield Show(f"adult {name}", [made[2]])


def records(folder: Path) -> Show:
    """Return a stream of records over twenty windows."""
    lines = write(folder / "records.jsonl", recorded("enforce", n_windows=20))
    audit = folder / "records audit.json"
    config = write_records_settings(
        folder / "records.toml",
        "mqtt://127.0.0.1",
        store=folder / "none.db",
        fleet={"cumulative": "enforce"},
    )
    _run("audit", "windows", lines, lines, "-c", config, "--json", audit)
    return Show("records", [audit])


def broken(folder: Path) -> Iterator[Show]:
    """Yield the releases that are broken on purpose."""
    for name, (audit, _) in BROKEN.items():
        path = folder / f"broken {name} audit.json"
        if not path.exists():
            with TemporaryDirectory() as made:
                path.write_text(audit(Path(made)).model_dump_json())
        yield Show(f"broken {name}", [path])


def _photograph(viewer: Viewer, path: Path, axe: str | None) -> tuple[int, int]:
    """Photograph a page; return how many faults it has, and how many pixels stick out."""
    faults = out = 0
    viewer.open(path.as_uri())
    for (screen, (width, height)), scheme in product(SCREENS.items(), SCHEMES):
        viewer.screen(width, height, mobile=screen == "narrow")
        feature = {"name": "prefers-color-scheme", "value": scheme}
        viewer.driver.execute_cdp_cmd(
            "Emulation.setEmulatedMedia", {"media": "screen", "features": [feature]}
        )
        viewer.driver.save_screenshot(str(path.with_suffix(f".{screen}.{scheme}.png")))
        out += viewer.script("return document.documentElement.scrollWidth") - width
        if axe is not None:
            viewer.driver.execute_script(axe)
            found = viewer.driver.execute_async_script(
                "axe.run().then(arguments[arguments.length - 1])"
            )
            faults += len(found["violations"])
            for each in found["violations"]:
                sys.stdout.write(
                    f"    {path.name}, {screen}, {scheme}: {each['id']}: {each['help']}\n"
                )
    return faults, out


def main() -> None:
    """Make, photograph and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--axe", type=Path)
    parser.add_argument("--minutes", type=float, default=60.0, help="of the taxis")
    parser.add_argument("--devices", type=int, help="taxis at most (default: all, 416 in an hour)")
    asked = parser.parse_args()
    data, folder = Path(os.environ["ANONYMIZER_DATA"]), asked.folder
    folder.mkdir(parents=True, exist_ok=True)
    axe = None if asked.axe is None else asked.axe.read_text()
    with opened_browser() as viewer:
        for show in chain(
            adult(folder, data),
            [records(folder)],
            broken(folder),
            taxis(folder, data, asked.minutes, asked.devices),
        ):
            found = evidence_of(show.audits, made="2026-11-26T00:00:00+00:00")
            path = folder / f"{show.name}.html"
            path.write_text(page(found))
            faults, out = _photograph(viewer, path, axe)
            sys.stdout.write(f"{_line(show.name, found)} | {faults} faults, {out} px too wide\n")


def _line(name: str, found: EvidenceReport) -> str:
    said = " | ".join(ANSWERS[found.answers[each]] for each in Criterion)
    return f"{name} | {'holds' if found.holds else 'BROKEN'} | {len(found.results)} | {said}"


if __name__ == "__main__":
    main()
