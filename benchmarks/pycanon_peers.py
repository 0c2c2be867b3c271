"""`python benchmarks/pycanon_peers.py`: anjana and pycanon, with the Python of the peers.

anjana TABLE.csv OUT.csv K QI=HIERARCHY.csv ...: anonymizes, and prints seconds of CPU.
pycanon RELEASE.csv QI ...: prints the k of a release.
"""

import sys
import time

import pandas as pd


def _anjana(table: str, out: str, k: str, *given: str) -> None:
    from anjana.anonymity import k_anonymity  # type: ignore[import-not-found]  # noqa: PLC0415

    began = time.process_time()
    rows = pd.read_csv(table, dtype=str)
    files = dict(each.split("=", 1) for each in given)
    trees = {qi: dict(pd.read_csv(f, sep=";", header=None, dtype=str)) for qi, f in files.items()}
    found = k_anonymity(rows, [], list(files), int(k), 5, trees)
    found.to_csv(out, index=False)
    print(time.process_time() - began)


def _pycanon(release: str, *qis: str) -> None:
    from pycanon import anonymity  # type: ignore[import-not-found]  # noqa: PLC0415

    print(anonymity.k_anonymity(pd.read_csv(release, dtype=str), list(qis)))


if __name__ == "__main__":
    if sys.argv[1] == "anjana":
        _anjana(*sys.argv[2:])
    else:
        _pycanon(*sys.argv[2:])
