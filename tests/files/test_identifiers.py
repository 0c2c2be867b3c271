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


CODE = "23456789CFGHJMPQRVWX"
HAN, KANA = (
    "\u738b\u674e\u5f20\u5218\u9648\u6768\u8d75\u9ec4",
    "\u3055\u304f\u3089\u306f\u306a\u3053",
)
ARABIC = (
    "\u0645\u062d\u0645\u062f",
    "\u0623\u062d\u0645\u062f",
    "\u0641\u0627\u0637\u0645\u0629",
    "\u0639\u0644\u064a",
    "\u062d\u0633\u0646",
)
HINDI = (
    "\u0930\u093e\u092e",
    "\u0938\u0940\u0924\u093e",
    "\u0905\u092e\u093f\u0924",
    "\u0936\u0930\u094d\u092e\u093e",
    "\u0938\u093f\u0902\u0939",
)
RUSSIAN = (
    "\u0418\u0432\u0430\u043d",
    "\u0410\u043d\u043d\u0430",
    "\u041e\u043b\u044c\u0433\u0430",
    "\u041f\u0451\u0442\u0440",
)


def _some(r: random.Random, signs: str, n: int) -> str:
    return "".join(r.choice(signs) for _ in range(n))


def _digits(r: random.Random, n: int) -> str:
    return _some(r, "0123456789", n)


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
    "IMEI": lambda r, _: f"35{_digits(r, 13)}",
    "IMEI in groups": lambda r, _: f"35-{_digits(r, 6)}-{_digits(r, 6)}-{_digits(r, 1)}",
    "Swiss social security": lambda r, _: f"756.{_digits(r, 4)}.{_digits(r, 4)}.{_digits(r, 2)}",
    "Swedish person": lambda r, _: f"19{_digits(r, 6)}-{_digits(r, 4)}",
    "Korean person": lambda r, _: f"{_digits(r, 6)}-{_digits(r, 7)}",
    "French passport": lambda r, _: f"{_digits(r, 2)}{_some(r, 'ABCD', 2)}{_digits(r, 5)}",
    "MAC of switches": lambda r, _: ".".join(f"{r.randrange(65536):04x}" for _ in range(3)),
    "IP address, version 6": lambda r, _: f"2001:db8::{r.randrange(65536):x}:1",
    "IP address with port": lambda r, i: f"10.0.{r.randrange(256)}.{i}:80",
    "profile": lambda _, i: f"linkedin.com/in/anna-{i}",
    "degrees": lambda r, i: (
        f"{40 + i % 9}\u00b0{i:02d}'{r.randrange(60):02d}\"N 7\u00b0{i:02d}'1\"E"
    ),
    "plus code": lambda r, _: f"{_some(r, CODE, 8)}+{_some(r, CODE, 2)}",
    "military grid": lambda r, _: f"32UQD{_digits(r, 10)}",
    "three words": lambda r, _: ".".join(_some(r, "abdeilmnorstu", 5) for _ in range(3)),
    "birth with time": lambda r, i: f"19{i + 40}-0{i % 9 + 1}-11 0{i % 9}:{r.randrange(10, 60)}",
    "phone with full stops": lambda r, _: f"415.{_digits(r, 3)}.{_digits(r, 4)}",
    "phone of Japan": lambda r, _: f"090-{_digits(r, 4)}-{_digits(r, 4)}",
    "phone as a link": lambda r, _: f"tel:+49170{_digits(r, 7)}",
    "name with particles": lambda r, _: f"{r.choice(FIRST)} van der {r.choice(LAST)}",
    "Russian name": lambda r, i: " ".join(r.choice(RUSSIAN) for _ in range(2 + i % 2)),
    "Arabic name": lambda r, _: " ".join(r.choice(ARABIC) for _ in range(3)),
    "Hindi name": lambda r, _: " ".join(r.choice(HINDI) for _ in range(3)),
    "Chinese name": lambda r, _: _some(r, HAN, 3),
    "Japanese name": lambda r, _: f"{_some(r, HAN, 2)} {_some(r, KANA, 3)}",
    "Italian address": lambda r, _: f"Via Roma {r.randrange(1, 200)}/{r.choice('AB')}",
    "Spanish address": lambda r, _: f"Calle de Alcal\u00e1, {r.randrange(1, 300)}, 3\u00ba B",
    "Dutch address": lambda r, _: f"Prinsengracht {r.randrange(1, 999)}-{r.choice('HI')}",
    "Polish address": lambda r, i: f"ul. D\u0142uga {r.randrange(1, 200)}/{i + 1}",
    "Japanese address": lambda r, i: f"\u6e0b\u8c37\u533a\u795e\u5357{i}-{r.randrange(1, 30)}",
    "Dutch plate": lambda r, _: f"{_digits(r, 2)}-{_some(r, 'BDFGHJ', 3)}-{_digits(r, 1)}",
    "Spanish plate": lambda r, _: f"{_digits(r, 4)} {_some(r, 'BCDFGH', 3)}",
    "Californian plate": lambda r, _: f"7{_some(r, 'ABCDEF', 3)}{_digits(r, 3)}",
    "Indian plate": lambda r, _: f"MH {_digits(r, 2)} {_some(r, 'ABCD', 2)} {_digits(r, 4)}",
    "Russian plate": lambda r, _: f"\u0410{_digits(r, 3)}\u0412\u0421 {_digits(r, 2)}",
    "Japanese plate": lambda r, _: f"\u54c1\u5ddd 300 \u3042 {_digits(r, 2)}-{_digits(r, 2)}",
    "account of a server": lambda _, i: f"@nick{i}@mastodon.example",
    "account with number": lambda r, _: f"{r.choice(FIRST)}#{_digits(r, 4)}",
    "masked card": lambda r, _: f"**** **** **** {_digits(r, 4)}",
    "short hash": lambda r, _: f"{r.getrandbits(32):08x}",
    "long hash": lambda r, _: f"{r.getrandbits(512):0128x}",
    "token": lambda r, _: _some(r, "abcdefghijABCDEFGHIJ0123456789_-", 21),
    "wallet": lambda r, _: f"0x{r.getrandbits(160):040x}",
    "e-mail with a name": lambda _, i: f"Anna <p{i}@example.org>",
    "e-mail in words": lambda _, i: f"p{i} at example.org",
    "e-mail in a text": lambda _, i: f"write to p{i}@example.org",
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
    "count": lambda r, _: str(r.randrange(12)),
    "price": lambda r, _: f"{r.choice([1, 2, 3, 5, 9]) * 10 - 0.01:.2f}",
    "code": lambda r, _: f"C{r.randrange(10, 40)}",
    "postcode of three digits": lambda r, _: str(r.randrange(100, 130)),
    "outward code": lambda r, _: r.choice(["SW1A", "EC1", "M1", "B33"]),
    "colour": lambda r, _: r.choice(["dark red", "Blue", "light green", "#ff0000"]),
    "city of a state": lambda r, _: r.choice(["Austin, TX", "Dallas, TX", "Boston, MA"]),
    "dose": lambda r, _: r.choice(["5 mg", "10 mg", "20 mg"]),
    "duration": lambda r, _: f"{r.randrange(1, 59)} min",
    "pressure": lambda r, _: f"{r.randrange(10, 16)}0/{r.randrange(60, 100)}",
    "share": lambda r, _: f"{r.randrange(100)}%",
    "group of ages": lambda r, _: r.choice(["18-25", "26-35", "36-50"]),
    "car": lambda r, _: r.choice(["VW Golf 7", "BMW X5", "Audi A4", "Ford F-150"]),
    "week": lambda r, _: f"2024-W{r.randrange(10, 20)}",
    "version": lambda r, _: r.choice(["1.2.3", "1.2.4", "10.0.1"]),
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
