"""Dirty values through a real broker: what subscribers get is judged by code that shares nothing.

The judge knows what each vehicle means, because it is what the messages were made from. It reads
the published classes as JSON, and counts vehicles and meanings.
"""

import json
import random
import unicodedata
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any, Literal

from anonymizer.transport.local_brokers import LocalBroker
from tests.app.gateway.recording import counted, publish, serving_records
from tests.app.gateway.records import assert_each_window_has_one_partition, compiled
from tests.end_to_end import eventually, witness
from tests.pipeline.records.made import Sent

__all__ = ["compiled"]

K, L, WINDOW_S = 5, 2, 60.0
N, N_BLANK, N_WINDOWS = 60, 15, 4
ILLS = ("Asthma", "Stra\u00dfenangst", "D\u00e9pression", "none")
CITIES = ("Z\u00fcrich", "Berlin", "\u00c5lesund", "Roma")
NO_VALUE = (None, "", " ", "?", "\\N", "NaT", "NULL", "n/a", "\u00a0", "\u200b")
INSURED = {"yes": ("true", "Yes", "1", "ja"), "no": ("false", "NO", "0", "nein")}
FORMS: tuple[Literal["NFC", "NFD", "NFKC", "NFKD"], ...] = ("NFC", "NFD", "NFKC", "NFKD")
FLEET: dict[str, Any] = {
    "name": "fleet", "window_s": WINDOW_S, "lateness_s": 5, "idle_s": 600, "method": "hilbert",
    "model": "kld", "promise": {"k": K, "d": 1, "l": L},
    "sources": [{"name": "clinic", "tells": ["age", "city", "insured", "ill"]}],
    "attributes": [
        {"name": "age", "lo": 18, "hi": 90},
        {"name": "city", "values": list(CITIES)},
        {"name": "insured", "values": ["yes", "no"]},
        {"name": "ill", "values": "any", "role": "sensitive"},
    ],
}  # fmt: skip


def written(rng: random.Random, value: str) -> str:
    cased = rng.choice([value, value.lower(), value.upper(), value.title()])
    blank = rng.choice(["", " ", "\u00a0", "\u200b"])
    return unicodedata.normalize(rng.choice(FORMS), cased) + blank


def number(rng: random.Random, value: int) -> object:
    wide = str(value).translate(str.maketrans("0123456789", "\uff10\uff11\uff12\uff13\uff14\uff15"
                                              "\uff16\uff17\uff18\uff19"))  # fmt: skip
    return rng.choice([value, str(value), f" {value}", f"{value}.0", wide])


def fleet_of(window: int) -> tuple[dict[str, dict[str, Any]], list[Sent]]:
    """Return what each vehicle means in a window, and the messages that say so.

    In the last window everybody has the same illness, in many writings.
    """
    rng = random.Random(window)  # noqa: S311  no secret
    truth, parts = {}, []
    for i in range(N + N_BLANK):
        meant: dict[str, Any] = {
            "age": rng.randint(18, 80), "city": rng.choice(CITIES),
            "insured": rng.choice(["yes", "no"]),
            "ill": "Asthma" if window == N_WINDOWS - 1 else rng.choice(ILLS),
        }  # fmt: skip
        said = {
            "age": number(rng, meant["age"]), "city": written(rng, meant["city"]),
            "insured": rng.choice(INSURED[meant["insured"]]), "ill": written(rng, meant["ill"]),
        }  # fmt: skip
        if i >= N:
            meant, said = {}, {name: rng.choice(NO_VALUE) for name in said}
        elif rng.random() < 0.1:
            meant["ill"], said["ill"] = None, rng.choice(NO_VALUE)
        name = f"v{window}-{i}"
        truth[name] = meant
        at = window * WINDOW_S
        parts.append(Sent(name, "clinic", at + rng.uniform(1, 50), said))
        if rng.random() < 0.3:  # says it again, in other writings
            again = said | {"ill": written(rng, meant["ill"])} if meant.get("ill") else said
            parts.append(Sent(name, "clinic", at + 51 + rng.random(), again))
    return truth, parts


def means(text: str, among: tuple[str, ...]) -> str:
    """Return the one meaning of a published text."""

    def bare(word: str) -> str:
        return unicodedata.normalize("NFC", unicodedata.normalize("NFKC", word).casefold()).strip()

    [found] = [each for each in among if bare(each) == bare(text)]
    return found


def covered(label: dict[str, Any], value: object) -> bool:
    if "values" in label:
        return value in label["values"]
    lo, hi = label["range"]
    return isinstance(value, int) and lo - 0.25 <= value <= hi + 0.25


async def test_published_windows_hide_vehicles_among_k_and_have_l_meanings(
    broker: LocalBroker, tmp_path: Path
) -> None:
    windows = [fleet_of(window) for window in range(N_WINDOWS)]
    parts = [part for _, sent in windows for part in sent]
    last = Sent("the-last", "clinic", 1e4, {})  # so late that every other window closes
    async with (
        witness(broker.url) as watching,
        serving_records(tmp_path, broker.url, fleet=FLEET) as gateway,
    ):
        await publish(broker.url, [*parts, last])
        await gateway.program.logged("window closed", times=N_WINDOWS)
        n_classes = sum(line["classes"] for line in gateway.program.events("window closed"))

        def payloads() -> list[bytes]:
            return [m.payload for m in watching.seen if m.topic == "anonymized/fleet"]

        await watching.until(lambda: len(payloads()) >= n_classes)
        now = await eventually(
            lambda: counted(gateway),
            lambda now: now["anonymizer_record_parts_received_total", "fleet"] > len(parts),
        )
    published = assert_each_window_has_one_partition(payloads())
    assert set(published) == {w * WINDOW_S for w in range(N_WINDOWS - 1)}  # the last has l = 1
    for start, classes in published.items():
        truth, sent = windows[round(start / WINDOW_S)]
        people = [each for each in truth.values() if each]
        assert sum(each["count"] for each in classes) <= len(people) == N
        shown: dict[str, set[str]] = defaultdict(set)
        stated = Counter(each["ill"] for each in people if each["ill"])
        told: Counter[str] = Counter()
        for each in classes:
            assert len(each["sensitive"]["ill"]) == each["count"] >= K
            fits = [p for p in people if all(covered(v, p[q]) for q, v in each["qis"].items())]
            assert len(fits) >= each["count"]
            ills = [x for x in each["sensitive"]["ill"] if x is not None]
            assert len({means(x, ILLS) for x in ills}) >= L
            for x in ills:
                shown[means(x, ILLS)].add(x)
                told[means(x, ILLS)] += 1
        assert all(len(texts) == 1 for texts in shown.values())  # one writing of each meaning
        assert all(told[ill] <= stated[ill] for ill in ILLS)
        assert len({part.values["ill"] for part in sent}) > 3 * len(ILLS)  # the control
    n_nobodys = now["anonymizer_record_parts_total", "fleet", "suppressed", "states_nothing"]
    assert n_nobodys >= N_BLANK * N_WINDOWS
    assert not any("invalid" in key for key, n in now.items() if n)
    assert not any(json.loads(x)["class"] < 0 or b"the-last" in x for x in payloads())
