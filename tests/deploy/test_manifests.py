"""Containers, Compose and Kubernetes: what can be told of them without an engine."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import kubernetes_validate  # type: ignore[import-untyped]
import pytest
import yaml  # type: ignore[import-untyped]
from typer.testing import CliRunner

from anonymizer.settings import Settings, load_settings
from anonymizer.web.token import LEAST_CHARS
from simulator.cli.main import app as simulator
from tests.deploy.deployment import make_secrets
from tests.deploy.files import DEPLOY, ROOT, dashboards, read_yaml

KUBERNETES = sorted((DEPLOY / "kubernetes").glob("*.yaml"))
VERSIONS = ("1.30", "1.34", "1.37")
COMPOSE: dict[str, Any] = read_yaml("compose.yaml")
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
DOCKERFILE = (DEPLOY / "Dockerfile").read_text()


def kubernetes(name: str) -> Any:  # noqa: ANN401  of YAML
    return read_yaml(f"kubernetes/{name}.yaml")


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("file", KUBERNETES, ids=lambda file: file.stem)
def test_kubernetes_would_take_every_manifest(file: Path, version: str) -> None:
    for document in yaml.safe_load_all(file.read_text()):
        if document["kind"] != "Kustomization":
            kubernetes_validate.validate(document, version, strict=True)


def test_kustomize_finds_all_but_the_example_of_a_secret() -> None:
    named = set(kubernetes("kustomization")["resources"])
    assert named == {file.name for file in KUBERNETES} - {
        "kustomization.yaml",
        "secret.example.yaml",
    }
    assert not any(kubernetes(name.removesuffix(".yaml"))["kind"] == "Secret" for name in named)


def test_the_manifests_fit_each_other() -> None:
    pod = kubernetes("deployment")["spec"]["template"]
    [container] = pod["spec"]["containers"]
    labels = pod["metadata"]["labels"]
    assert kubernetes("service")["spec"]["selector"].items() <= labels.items()
    chosen = kubernetes("networkpolicy")["spec"]["podSelector"]["matchLabels"]
    assert chosen.items() <= labels.items()
    volumes = {volume["name"]: volume for volume in pod["spec"]["volumes"]}
    assert {mount["name"] for mount in container["volumeMounts"]} == volumes.keys()
    assert volumes["settings"]["configMap"]["name"] == kubernetes("configmap")["metadata"]["name"]
    assert volumes["secrets"]["secret"]["secretName"] == "anonymizer"
    claim = volumes["store"]["persistentVolumeClaim"]["claimName"]
    assert claim == kubernetes("pvc")["metadata"]["name"]
    assert container["args"][-1] == f"{mount_of(container, 'settings')}/gateway.toml"


def mount_of(container: dict[str, Any], volume: str) -> str:
    [path] = [m["mountPath"] for m in container["volumeMounts"] if m["name"] == volume]
    assert isinstance(path, str)
    return path


def test_a_pod_has_the_least_that_it_needs() -> None:
    spec = kubernetes("deployment")["spec"]
    pod = spec["template"]["spec"]
    [container] = pod["containers"]
    assert spec["replicas"] == 1
    assert spec["strategy"] == {"type": "Recreate"}
    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"]["runAsNonRoot"]
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert container["resources"]["limits"].keys() == {"cpu", "memory"}
    for probe, path in (
        ("startup", "/healthz"),
        ("liveness", "/healthz"),
        ("readiness", "/readyz"),
    ):
        assert container[f"{probe}Probe"]["httpGet"] == {"path": path, "port": "http"}
    assert kubernetes("networkpolicy")["spec"]["policyTypes"] == ["Ingress", "Egress"]


def test_the_settings_of_the_pod_are_settings(tmp_path: Path) -> None:
    file = tmp_path / "gateway.toml"
    file.write_text(kubernetes("configmap")["data"]["gateway.toml"])
    settings = load_settings(file, {})
    [container] = kubernetes("deployment")["spec"]["template"]["spec"]["containers"]
    secrets = kubernetes("secret.example")["stringData"]
    for path in (
        settings.broker.password_file,
        settings.broker.ca_file,
        settings.http.token_file,
    ):
        assert path is not None
        assert str(path.parent) == mount_of(container, "secrets")
        assert path.name in secrets
    assert str(settings.store.path.parent) == mount_of(container, "store")
    assert (
        settings.tick.drain_s
        < kubernetes("deployment")["spec"]["template"]["spec"]["terminationGracePeriodSeconds"]
    )


def test_compose_would_take_its_file() -> None:
    schema = json.loads((ROOT / "tests" / "deploy" / "compose-spec.json").read_text())
    validator = jsonschema.Draft201909Validator(schema)
    validator.validate(COMPOSE)
    assert not validator.is_valid(COMPOSE | {"services": {"gateway": {"imag": "x"}}})


def test_what_compose_names_is_there() -> None:
    for name, service in SERVICES.items():
        assert set(service.get("depends_on", ())) <= SERVICES.keys(), name
        assert set(service.get("networks", ())) <= COMPOSE["networks"].keys(), name
        assert set(service.get("secrets", ())) <= COMPOSE["secrets"].keys(), name
        for volume in service.get("volumes", ()):
            source = volume.split(":")[0]
            if not source.startswith("./"):
                assert source in COMPOSE["volumes"], name
            elif not source.startswith("./secrets/"):
                assert (DEPLOY / source).exists(), source


def test_no_container_has_more_than_it_needs() -> None:
    for name, service in SERVICES.items():
        assert service["read_only"] is True, name
        assert service["cap_drop"] == ["ALL"], name
        assert "no-new-privileges:true" in service["security_opt"], name
        assert not service.get("privileged"), name
        for port in service.get("ports", ()):
            assert port.startswith("127.0.0.1:") or port == "8883:8883", name
    root = {name for name, service in SERVICES.items() if service.get("user", "").startswith("0")}
    assert root == {"broker-data"}
    assert SERVICES["broker-data"]["network_mode"] == "none"


def test_the_gateway_of_compose_gets_settings_that_are_settings() -> None:
    environment = SERVICES["gateway"]["environment"]
    settings = load_settings(DEPLOY / "gateway.toml", environment)
    assert settings.broker.url == "mqtts://mosquitto:8884"
    mounted = {volume.split(":")[1] for volume in SERVICES["gateway"]["volumes"]}
    assert str(settings.broker.ca_file) in mounted
    assert str(settings.broker.password_file) == "/run/secrets/gateway_password"
    assert all("PASSWORD" not in key or key.endswith("FILE") for key in environment)


def test_whoever_is_scraped_has_the_token_and_prometheus_a_copy(tmp_path: Path) -> None:
    made = make_secrets(tmp_path)
    for name in ("gateway", "bridge", "worker"):
        settings = load_settings(DEPLOY / "gateway.toml", SERVICES[name]["environment"])
        assert settings.http.token_file == Path("/run/secrets/http_token"), name
        assert "http_token" in SERVICES[name]["secrets"], name
    file = DEPLOY / COMPOSE["secrets"]["http_token"]["file"]
    token = (made / file.relative_to(DEPLOY / "secrets")).read_text()
    assert len(token) > LEAST_CHARS
    mounts = dict(reversed(each.split(":")[:2]) for each in SERVICES["prometheus"]["volumes"])
    for job in read_yaml("prometheus.yml")["scrape_configs"]:
        shown = mounts[f"/etc/prometheus/{job['authorization']['credentials_file']}"]
        assert (made / Path(shown).relative_to("secrets")).read_text() == token, job["job_name"]


def test_the_simulator_of_compose_understands_its_command() -> None:
    command = [*SERVICES["simulator"]["command"], "--help"]
    ran = CliRunner().invoke(simulator, command)
    assert ran.exit_code == 0, ran.output
    for key in SERVICES["simulator"]["environment"]:
        assert key == "NUMBA_CACHE_DIR" or f'envvar="{key}"' in source_of_simulator()


def source_of_simulator() -> str:
    return (ROOT / "simulator" / "cli" / "options.py").read_text()


def test_the_image_is_built_of_what_is_pinned_and_runs_as_nobody() -> None:
    assert len(re.findall(r"^FROM ", DOCKERFILE, re.MULTILINE)) == 2
    assert "--require-hashes -r" in DOCKERFILE
    last = DOCKERFILE.rpartition("FROM ")[2]
    [user] = re.findall(r"^USER (\d+):(\d+)$", last, re.MULTILINE)
    assert user == ("10001", "10001")
    pod = kubernetes("deployment")["spec"]["template"]["spec"]["securityContext"]
    assert (str(pod["runAsUser"]), str(pod["runAsGroup"])) == user
    assert not re.search(r"^(ADD|ENV .*(PASSWORD|TOKEN|SECRET))", DOCKERFILE, re.MULTILINE)
    # The only argument is the base of both stages, which a release names by its digest.
    assert set(re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE)) == {"$BASE"}
    [(argument, base)] = re.findall(r"^ARG (\w+)=(\S+)$", DOCKERFILE, re.MULTILINE)
    assert argument == "BASE"
    images = [
        service["image"]
        for service in SERVICES.values()
        if not service["image"].startswith("anonymizer")
    ]
    for image in [base, *images]:
        assert re.fullmatch(r"[a-z/-]+:[a-z0-9][a-z0-9.-]*\d[a-z0-9.-]*", image), image
        assert not image.endswith(":latest")


def test_what_the_image_copies_is_sent_to_the_builder_and_nothing_else() -> None:
    lines = (DEPLOY / "Dockerfile.dockerignore").read_text().splitlines()
    sent = {line.removeprefix("!") for line in lines if line.startswith("!")}
    copied = {
        name
        for line in re.findall(r"^COPY (?!--from)(.+) \S+$", DOCKERFILE, re.MULTILINE)
        for name in line.split()
    }
    assert sent == copied
    assert all((ROOT / name).exists() for name in copied)


def test_grafana_finds_its_dashboards_and_its_prometheus() -> None:
    [source] = read_yaml("grafana/provisioning/datasources/prometheus.yaml")["datasources"]
    assert source["url"] == "http://prometheus:9090"
    [provider] = read_yaml("grafana/provisioning/dashboards/anonymizer.yaml")["providers"]
    mounted = [volume.split(":")[1] for volume in SERVICES["grafana"]["volumes"]]
    assert provider["options"]["path"] in mounted
    boards = dashboards()
    assert len({board["uid"] for board in boards.values()}) == len(boards)
    for board in boards.values():
        for panel in board["panels"]:
            assert panel["datasource"]["uid"] == source["uid"]
            assert panel["title"]
            assert panel["targets"]


def test_the_annotated_settings_hold_the_defaults_for_the_broker() -> None:
    assert (
        tomllib.loads((DEPLOY / "gateway.toml").read_text())["broker"]["allow_plaintext"] is False
    )
    broker = load_settings(DEPLOY / "gateway.toml", {}).broker
    own = {"drops_topic": None, "max_backlog_s": 0.0}
    assert all(getattr(broker, key) for key in own)
    assert broker.model_copy(update=own) == Settings().broker
