"""Codecs of other distributions: a real dist-info on the path, found by its entry points."""

from pathlib import Path

import numpy as np
import pytest

from anonymizer import plugins
from anonymizer.codecs.guard import guarded
from anonymizer.domain.fixes import Fix
from anonymizer.domain.outcomes import Outcome
from anonymizer.errors import SettingsError
from anonymizer.networks import load_network
from anonymizer.pipeline.positions.tick.factory import cloaking_operator
from anonymizer.settings import InputSettings, Settings, load_settings
from tests.cli.support import anonymizer

ACME = """
from anonymizer.domain.fixes import checked_fix
from anonymizer.domain.outcomes import Outcome

def decode(payload):
    lat, lon = payload.decode("ascii").split(";")
    return [checked_fix(float(lat), float(lon))]

def liar(payload):
    from anonymizer.domain.fixes import Fix
    return [Fix(91.0, 2.0), Fix(1.0, 2.0, float("inf")), Fix(1.0, 2.0, None, ""), 7,
            Outcome.PUBLISHED, Fix(1.0, 2.0, None, "a", {"x": float("nan"), "y": 3.0})]
"""


CLOAKS = """
import numpy as np
from anonymizer.algorithms.positions.cloaks.protocol import MemorylessCloak
from anonymizer.domain.outcomes import Outcome
from anonymizer.domain.arrays import starts_of
from anonymizer.domain.release import Cloaked, Release

class Groups(MemorylessCloak):
    reciprocal = True

    def __init__(self, network, size):
        self.network, self.size = network, size

    def cloak(self, density, slot, *, now):
        n_groups = len(slot) // self.size
        member = slot[: n_groups * self.size]
        nodes = np.arange(self.network.n_nodes, dtype=np.int32)
        return Cloaked(
            Release(
                k=np.full(n_groups, 5, np.int32),
                first_node_of=starts_of(np.full(n_groups, len(nodes))),
                node=np.tile(nodes, n_groups),
                first_member_of=starts_of(np.full(n_groups, self.size)),
                member=member,
                version=np.zeros(len(member), np.int64),
            ),
            np.full(len(slot), Outcome.PUBLISHED, np.uint8),
        )

def fives(network, settings):
    return Groups(network, 5)

def liar(network, settings):
    return Groups(network, 1)  # and says that its k is 5

def shy(network, settings):
    groups = Groups(network, 5)
    groups.reciprocal = False
    return groups
"""


def install(
    folder: Path, name: str, *entries: str, code: str = ACME, group: str = "anonymizer.codecs"
) -> None:
    """Install a distribution as pip does: a module, and a dist-info beside it."""
    (folder / f"{name}.py").write_text(code)
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("\n".join([f"[{group}]", *entries]) + "\n")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def test_an_installed_codec_is_used_by_its_name(site: Path) -> None:
    install(site, "acme_gateway", "acme = acme_gateway:decode", "liar = acme_gateway:liar")
    codec = InputSettings.model_validate({"codec": "acme"}).make_codec()
    assert codec(b"60.17;24.94") == [Fix(60.17, 24.94)]
    assert codec(b"91;0") == [Outcome.INVALID__OUT_OF_RANGE]
    # It raises, and the gateway goes on.
    assert codec(b"\xff") == [Outcome.INVALID__MALFORMED]
    assert codec(b"") == [Outcome.INVALID__EMPTY]


def test_what_a_plug_in_returns_is_checked(site: Path) -> None:
    install(site, "acme_liar", "liar = acme_liar:liar")
    assert InputSettings.model_validate({"codec": "liar"}).make_codec()(b"x") == [
        Outcome.INVALID__OUT_OF_RANGE,
        Outcome.INVALID__SCHEMA,
        Fix(1.0, 2.0),
        Outcome.INVALID__SCHEMA,
        Outcome.INVALID__SCHEMA,
        Fix(1.0, 2.0, None, "a", {"y": 3.0}, unusable=("x",)),
    ]


def test_a_codec_of_the_gateway_is_never_replaced(site: Path) -> None:
    install(site, "acme_native", "native = acme_native:decode")
    codec = InputSettings().make_codec()
    assert codec(b'{"lat":1,"lon":2}') == [Fix(1.0, 2.0)]


def test_two_distributions_with_one_name_are_refused(site: Path) -> None:
    install(site, "acme_one", "twice = acme_one:decode")
    install(site, "acme_two", "twice = acme_two:decode")
    with pytest.raises(SettingsError, match=r"twice: several .*: acme_one, acme_two"):
        plugins.load_plugin(plugins.CODECS, "twice")


def test_check_says_in_one_line_why_a_plug_in_cannot_be_loaded(site: Path) -> None:
    install(site, "acme_broken", "broken = acme_broken:decode", code="raise OSError('no radio')")
    config = site / "gateway.toml"
    config.write_text('[network]\nsource = "grid:2x2"\n[[inputs]]\ncodec = "broken"\n')
    ran = anonymizer("check", "--config", config, environment={"PYTHONPATH": str(site)})
    assert ran.returncode == 2
    assert ran.stderr.strip().endswith(
        "inputs: codec: broken: the plug-in of acme_broken cannot be loaded: OSError: no radio"
    )


def test_a_name_that_nothing_has_is_refused_with_those_there_are(site: Path) -> None:
    install(site, "acme_listed", "listed = acme_listed:decode")
    config = site / "gateway.toml"
    config.write_text('[[inputs]]\ncodec = "lited"\n')
    with pytest.raises(SettingsError, match=r"must be one of .*, json, listed, "):
        load_settings(config, {})


def test_a_codec_that_returns_nothing_usable_costs_only_its_message() -> None:
    for returned in (None, 5, [], [None], (Fix(None, 2.0),), ["x"]):  # type: ignore[arg-type]
        found = guarded(lambda _, returned=returned: returned)(b"x")  # type: ignore[misc]
        assert len(found) == 1
        assert isinstance(found[0], Outcome)
        assert found[0].label[0] == "invalid"


NETWORK = load_network("grid:3x3")


def tick(cloak: str, *, mode: str = "snapshot") -> list[str]:
    """Return what becomes of ten devices, cloaked by a plug-in."""
    settings = Settings.model_validate({"region": {"mode": mode, "cloak": cloak}})
    operator = cloaking_operator(settings, NETWORK)
    slot = np.arange(10, dtype=np.int32)
    found = operator.tick(slot, np.full(10, 99.0), slot % NETWORK.n_nodes, now=100.0)
    return [Outcome(outcome).name for outcome in found.outcome.tolist()]


def test_an_installed_cloak_forms_the_groups_and_is_verified_like_any_other(site: Path) -> None:
    entries = [f"{name} = acme_cloaks:{name}" for name in ("fives", "liar", "shy")]
    install(site, "acme_cloaks", *entries, code=CLOAKS, group="anonymizer.cloaks")
    assert tick("fives") == ["PUBLISHED"] * 10
    assert tick("liar") == ["SUPPRESSED__UNVERIFIED"] * 10
    assert tick("liar", mode="adka") == ["SUPPRESSED__UNVERIFIED"] * 10
    assert tick("shy", mode="adka") == ["PUBLISHED"] * 10
    with pytest.raises(SettingsError, match="shy: its members do not hide each other"):
        tick("shy")


def test_a_cloak_that_does_not_fit_districts_is_refused(site: Path) -> None:
    entry = "fives = acme_districts:fives"
    install(site, "acme_districts", entry, code=CLOAKS, group="anonymizer.cloaks")

    network = load_network("grid:9x9")

    def operator(cloak: str, mode: str) -> object:
        region = {"mode": mode, "cloak": cloak, "districts": 2, "min_nodes": 1}
        return cloaking_operator(Settings.model_validate({"region": region}), network)

    assert operator("fives", "snapshot")
    with pytest.raises(SettingsError, match='fives: not with districts and mode = "session"'):
        operator("fives", "session")


def test_check_names_a_cloak_that_is_not_installed(tmp_path: Path) -> None:
    config = tmp_path / "gateway.toml"
    config.write_text('[network]\nsource = "grid:2x2"\n[region]\ncloak = "acme"\n')
    ran = anonymizer("check", "--config", config)
    assert ran.returncode == 2
    assert ran.stderr.endswith("region.cloak: acme: no plug-in of this name is installed\n")
