"""Direct identifiers are recognized by what cells hold, and ordinary columns are not."""

import random
from collections.abc import Callable

import polars as pl
import pytest

from anonymizer.files.identifiers import recognized

N = 60
FIRST = ("Anna", "Bob", "Carla", "David", "Emma", "Farid", "Greta", "Hugo")
LAST = ("Smith", "M\u00fcller", "Garc\u00eda", "Nguyen", "Kowalski", "O'Neil", "Khan", "Silva")
Make = Callable[[random.Random, int], str]


def _checked(digits: str) -> str:
    """Digits with that of Luhn's check behind them."""
    doubled = [sum(divmod(2 * int(d), 10)) if i % 2 == 0 else int(d)
               for i, d in enumerate(reversed(digits))]  # fmt: skip
    return f"{digits}{-sum(doubled) % 10}"


def _iban(account: int) -> str:
    rest = 98 - int(f"{account:018d}131400") % 97  # 13 and 14 are D and E
    return f"DE{rest:02d}{account:018d}"


IDENTIFIERS: dict[str, Make] = {
    "e-mail": lambda _, i: f"p{i}@example.org",
    "phone": lambda r, _: f"+49 170 {r.randrange(10**6, 10**7)}",
    "phone of the US": lambda r, _: f"(555) {r.randrange(200, 999)}-{r.randrange(1000, 9999)}",
    "name": lambda r, _: f"{r.choice(FIRST)} {r.choice(LAST)}",
    "name, last first": lambda r, _: f"{r.choice(LAST)}, {r.choice(FIRST)}",
    "plate": lambda r, _: f"B-{r.choice('ABCD')}{r.choice('EFGH')} {r.randrange(100, 9999)}",
    "Chinese plate": lambda r, _: f"\u4eacA{r.randrange(10000, 99999)}",
    "address": lambda r, _: f"{r.randrange(1, 200)} {r.choice(LAST)} Street",
    "German address": lambda r, _: f"{r.choice(LAST)}stra\u00dfe {r.randrange(1, 200)}",
    "IBAN": lambda _, i: _iban(1_000_000 + i),
    "card": lambda _, i: _checked(f"4000{i:011d}"),
    "US social security": lambda r, i: f"{r.randrange(100, 800)}-{i % 90 + 10}-{1000 + i}",
    "Chinese id": lambda r, i: f"110101{1950 + i}0{i % 9 + 1}1{i % 9}{r.randrange(1000, 9999)}",
    "IP address": lambda r, _: f"10.{r.randrange(256)}.{r.randrange(256)}.{r.randrange(256)}",
    "MAC address": lambda r, _: ":".join(f"{r.randrange(256):02x}" for _ in range(6)),
    "UUID": lambda r, _: f"{r.getrandbits(32):08x}-0000-4000-8000-{r.getrandbits(48):012x}",
    "URL": lambda _, i: f"https://example.org/u/{i}",
    "VIN": lambda r, i: f"WVWZZZ1K{r.choice('ABCDE')}W{100000 + i}1",
    "coordinates": lambda r, _: f"{r.uniform(40, 50):.5f}, {r.uniform(5, 15):.5f}",
    "free text": lambda r, _: " ".join(r.choice(LAST).lower() for _ in range(9)),
    "customer number": lambda _, i: str(4_100_000 + 7 * i),
    "account name": lambda _, i: f"@nick{i}",
    "passport": lambda r, _: f"C{r.randrange(10**7, 10**8)}",
}
ORDINARY: dict[str, Make] = {
    "illness": lambda r, _: r.choice(["flu", "cold", "none", "Diabetes Mellitus"]),
    "age": lambda r, _: str(r.randrange(18, 90)),
    "postcode": lambda r, _: f"{r.randrange(1000, 1020):05d}",
    "year": lambda r, _: str(r.randrange(1990, 2020)),
    "visits": lambda r, _: str(r.randrange(30)),
    "job": lambda r, _: r.choice(["nurse", "Software Engineer", "Truck Driver"]),
    "pay in thousands": lambda r, _: str(1000 * r.randrange(20, 50)),
    "month": lambda r, _: f"2023-{r.randrange(1, 13):02d}",
    "code of an illness": lambda r, _: r.choice(["E11.9", "I10", "J45.0"]),
    "city": lambda r, _: r.choice(["New York", "Berlin", "Los Angeles"]),
    "flag": lambda r, _: r.choice(["yes", "no"]),
}


def column(make: Make) -> pl.Series:
    rng = random.Random(7)  # noqa: S311  no secret
    return pl.Series("x", [make(rng, i) for i in range(N)])


@pytest.mark.parametrize("make", IDENTIFIERS.values(), ids=IDENTIFIERS)
def test_identifiers_are_recognized(make: Make) -> None:
    assert recognized(column(make)) is not None


@pytest.mark.parametrize("make", ORDINARY.values(), ids=ORDINARY)
def test_ordinary_columns_are_none(make: Make) -> None:
    assert recognized(column(make)) is None


def test_a_few_addresses_among_many_words_are_enough() -> None:
    cells = ["none"] * 95 + [f"p{i}@example.org" for i in range(5)]
    found = recognized(pl.Series("note", cells))
    assert found is not None
    assert (found.kind, found.n_cells) == ("e-mail addresses", 5)
