"""Compilation ahead: the calls ask for all that the first ticks of a gateway need."""

from pathlib import Path

import pytest

from anonymizer.app.compilation import compile_kernels
from tests.cold import told_cold

ASKED = """
import json
import sys
from concurrent.futures import Future

from anonymizer import kernel_background, kernel_cache
from anonymizer.app.compilation import call_kernels
from anonymizer.app.gateway.gateway import Gateway
from anonymizer.networks import load_network
from anonymizer.pipeline.packed_deliveries import PackedDeliveries
from anonymizer.pipeline.ports import Delivery
from anonymizer.settings import Settings


class NeverDone(kernel_background.Background):
    def _put(self, *_, **__):
        return Future()


def told():
    return sorted(f"{one.__module__}.{one.__name__} {types}" for one, types in never._asked)


def serve(mode):
    tables = {"network": {"source": "city:100"}, "region": {"mode": mode}, "http": {"host": ""}}
    network = load_network("city:100")
    gateway = Gateway(Settings.model_validate(tables), network)
    gateway.warm_up()
    for second in range(1, 30):
        told = [
            Delivery(f"positions/{i}", json.dumps({"lat": lat, "lon": lon}).encode(), 0)
            for i, (lat, lon) in enumerate(zip(network.lat[:60], network.lon[:60]))
        ]
        gateway.inbox.put(PackedDeliveries.of(told), at_s=float(second))
        output = gateway.flow.tick(gateway.inbox.take(), now=1.8e9 + second)
        gateway.flow.settle(output, [True] * len(output.messages), seconds=0.0)


never = NeverDone()
kernel_cache.compile_in(never)
modes = ("session", "snapshot", "adka")
call_kernels(modes)
ahead = told()
for mode in modes:
    serve(mode)
json.dump([ahead, told()], sys.stdout)
"""


@pytest.mark.compiled
def test_the_first_ticks_need_no_kernel_that_was_not_asked_for_ahead(tmp_path: Path) -> None:
    ahead, needed = told_cold(tmp_path, ASKED)
    assert [each for each in needed if each not in ahead] == []
    assert len(ahead) > 20


def test_a_machine_that_has_all_kernels_is_told_of_none() -> None:
    compile_kernels()
    told: list[tuple[int, int]] = []
    compile_kernels(lambda done, asked: told.append((done, asked)))
    assert told == []
