"""Releases by anjana and anonypy: run by the Python of `make test-judge`, which has both.

`python other_programs.py FOLDER`: `FOLDER/jobs.json` lists `{"program", "table", "out", "k", "l",
"t", "qi", "sa", "hierarchies"}`; each is written to `out`, and which have a release is printed as
JSON.
"""

import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

pandas: Any = import_module("pandas")
MOST_SUPPRESSED = 50
"""Percent of the rows that anjana may leave out."""


def anjana(job: dict[str, Any], rows: Any) -> Any:  # noqa: ANN401  of pandas
    """Return a release with levels of hierarchies of whole columns."""
    anonymity = import_module("anjana.anonymity")
    trees = {
        qi: dict(pandas.read_csv(file, sep=";", header=None, dtype=str))
        for qi, file in job["hierarchies"].items()
    }
    common: tuple[Any, ...] = (rows, [], job["qi"])
    if job["l"]:
        return anonymity.l_diversity(*common, job["sa"], job["k"], job["l"], MOST_SUPPRESSED, trees)
    if job["t"]:
        return anonymity.t_closeness(*common, job["sa"], job["k"], job["t"], MOST_SUPPRESSED, trees)
    return anonymity.k_anonymity(*common, job["k"], MOST_SUPPRESSED, trees)


def anonypy(job: dict[str, Any], rows: Any) -> Any:  # noqa: ANN401  of pandas
    """Return a release of classes by Mondrian, a row for each class and sensitive value."""
    for qi in job["qi"]:
        try:
            rows[qi] = rows[qi].astype(int)
        except ValueError:
            rows[qi] = rows[qi].astype("category")
    rows[job["sa"]] = rows[job["sa"]].astype("category")
    made = import_module("anonypy").Preserver(rows, job["qi"], job["sa"])
    if job["l"]:
        return pandas.DataFrame(made.anonymize_l_diversity(job["k"], job["l"]))
    if job["t"]:
        return pandas.DataFrame(made.anonymize_t_closeness(job["k"], job["t"]))
    return pandas.DataFrame(made.anonymize_k_anonymity(job["k"]))


def main(folder: Path) -> None:
    """Write all releases."""
    done = []
    for job in json.loads((folder / "jobs.json").read_text()):
        rows = pandas.read_csv(folder / job["table"], dtype=str)
        make = anjana if job["program"] == "anjana" else anonypy
        made = make(job, rows)
        done.append(len(made) > 0)
        if len(made):
            made.to_csv(folder / job["out"], index=False)
    sys.stdout.write("\n" + json.dumps(done))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
