"""Bridges and workers on Kafka: what can be told of their files without an engine."""

import re
import secrets
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import kubernetes_validate  # type: ignore[import-untyped]
import pytest
import yaml  # type: ignore[import-untyped]
from prometheus_client.core import Metric
from typer.testing import CliRunner

from anonymizer.cli.main import app
from anonymizer.cluster.bridge_metrics import BridgeCollector, Passed
from anonymizer.cluster.kafka import changelogs, topic_configs
from anonymizer.cluster.limits import check_cluster
from anonymizer.cluster.topics import topic_by_kind
from anonymizer.cluster.worker_metrics import StageAccounts, WorkDone, WorkerCollector
from anonymizer.errors import SettingsError
from anonymizer.settings import load_settings
from tests.deploy.files import DEPLOY, dashboard_queries, read_yaml


def exported() -> set[str]:
    """Return the names of all metrics of bridges and workers."""
    bridge = BridgeCollector(
        Passed(),
        connected=lambda: True,
        lag=lambda: 0,
        owned=lambda: 0,
        releases_lag=lambda: 0,
        waited_s=lambda: 0.0,
    )
    nothing = StageAccounts(n_received=0, n_held=0, n_of={}, n_events={})
    worker = WorkerCollector(WorkDone(), lambda: nothing)
    return names_of(bridge.collect()) | names_of(worker.collect())


def names_of(families: Iterable[Metric]) -> set[str]:
    return {f"{each.name}_total" if each.type == "counter" else each.name for each in families}


def test_alerts_and_dashboard_ask_for_metrics_that_exist() -> None:
    queries = [query for _, query in dashboard_queries("cluster")]
    text = "\n".join([(DEPLOY / "alerts-cluster.yml").read_text(), *queries])
    named = set(re.findall(r"\banonymizer_[a-z_]+", text))
    assert len(named) > 10
    assert named <= exported()


CLUSTER = DEPLOY / "kubernetes" / "cluster"
MANIFESTS = sorted(CLUSTER.glob("*.yaml"))


def manifest(name: str) -> list[Any]:
    return list(yaml.safe_load_all((CLUSTER / f"{name}.yaml").read_text()))


@pytest.mark.parametrize("file", MANIFESTS, ids=lambda file: file.stem)
def test_kubernetes_would_take_every_manifest(file: Path) -> None:
    for document in yaml.safe_load_all(file.read_text()):
        if document["kind"] != "Kustomization":
            kubernetes_validate.validate(document, "1.30", strict=True)


def test_kustomize_finds_all_but_the_example_of_a_secret() -> None:
    [kustomization] = manifest("kustomization")
    rest = {"kustomization.yaml", "secret.example.yaml"}
    assert set(kustomization["resources"]) == {file.name for file in MANIFESTS} - rest


@pytest.mark.parametrize("name", ["bridge", "worker"])
def test_pods_have_the_least_that_they_need_and_what_they_name_is_there(name: str) -> None:
    [pods] = manifest(name)
    pod = pods["spec"]["template"]["spec"]
    [container] = pod["containers"]
    labels = pods["spec"]["template"]["metadata"]["labels"]
    assert pods["spec"]["selector"]["matchLabels"] == labels
    assert pods["spec"]["serviceName"] in {
        each["metadata"]["name"] for each in manifest("services")
    }
    for each in [*manifest("services"), *manifest("disruption")]:
        chosen = each["spec"]["selector"]
        if each["metadata"]["name"] == f"anonymizer-{name}":
            assert chosen.get("matchLabels", chosen) == labels
    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"]["runAsNonRoot"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    mounts = {mount["name"] for mount in container["volumeMounts"]}
    assert mounts == {volume["name"] for volume in pod["volumes"]}
    command = CliRunner().invoke(app, [container["args"][0], "--help"])
    assert command.exit_code == 0
    options = [text for text in container["args"] if text.startswith("--")]
    assert all(option in command.output for option in options)


def test_the_settings_of_the_pods_are_settings_of_a_cluster(tmp_path: Path) -> None:
    [configmap], [secret], [worker] = map(manifest, ("configmap", "secret.example", "worker"))
    file = tmp_path / "gateway.toml"
    file.write_text(configmap["data"]["gateway.toml"])
    [container] = worker["spec"]["template"]["spec"]["containers"]
    environment = {
        each["name"]: secret["stringData"][each["valueFrom"]["secretKeyRef"]["key"]]
        for each in container["env"]
    }
    with pytest.raises(SettingsError, match="client_id of 32 random characters"):
        load_settings(file, environment)  # the example is to be changed
    environment["ANONYMIZER__BROKER__CLIENT_ID"] = secrets.token_hex(16)
    settings = load_settings(file, environment)
    check_cluster(settings)
    assert settings.kafka.options["security.protocol"].get_secret_value() == "ssl"
    assert settings.cluster.secret_file
    assert settings.broker.password_file
    assert settings.http.token_file
    for path in (
        settings.broker.password_file,
        settings.http.token_file,
        settings.cluster.secret_file,
    ):
        assert str(path.parent) == "/run/secrets/anonymizer"
        assert path.name in secret["stringData"]
    [autoscaler] = manifest("autoscaling")
    most = settings.cluster.n_parts + settings.region.districts
    assert autoscaler["spec"]["maxReplicas"] <= most
    [metric] = autoscaler["spec"]["metrics"]
    assert metric["pods"]["metric"]["name"] in exported()


def test_an_operator_makes_the_topics_that_workers_would_make(tmp_path: Path) -> None:
    file = tmp_path / "gateway.toml"
    file.write_text(manifest("configmap")[0]["data"]["gateway.toml"])
    settings = load_settings(file, {"ANONYMIZER__BROKER__CLIENT_ID": secrets.token_hex(16)})
    topics, configs = topic_by_kind(settings), topic_configs(settings)
    expected = {each.name: (each.n_partitions, configs[each.name]) for each in topics.values()}
    stages = [topics["source"], topics["lane"]]
    for each in changelogs(f"{settings.kafka.group}.workers", stages):
        expected[each.topic] = (each.num_partitions, each.config or {})
    specs = [each["spec"] for each in manifest("operators/topics")]
    assert {each["topicName"]: (each["partitions"], each["config"]) for each in specs} == expected
    [user] = manifest("operators/user")
    prefixes = [
        each["resource"]["name"]
        for each in user["spec"]["authorization"]["acls"]
        if each["resource"]["type"] == "topic"
    ]
    assert all(name.startswith(tuple(prefixes)) for name in expected)


def test_the_monitor_finds_the_pods_under_the_name_that_alerts_know() -> None:
    [monitor] = manifest("operators/monitor")
    [chosen] = monitor["spec"]["selector"]["matchExpressions"]
    pods = [each for name in ("bridge", "worker") for each in manifest(name)]
    labels = [each["spec"]["template"]["metadata"]["labels"][chosen["key"]] for each in pods]
    assert labels == chosen["values"]
    [endpoint] = monitor["spec"]["podMetricsEndpoints"]
    for each in pods:
        [container] = each["spec"]["template"]["spec"]["containers"]
        assert endpoint["port"] in {port["name"] for port in container["ports"]}
    [renamed] = endpoint["relabelings"]
    assert f'job="{renamed["replacement"]}"' in (DEPLOY / "alerts-cluster.yml").read_text()
    key = endpoint["authorization"]["credentials"]
    [secret] = manifest("secret.example")
    assert key["name"] == secret["metadata"]["name"]
    assert key["key"] in secret["stringData"]


def test_kustomize_finds_all_that_operators_are_given() -> None:
    [kustomization] = manifest("operators/kustomization")
    files = {file.name for file in (CLUSTER / "operators").glob("*.yaml")}
    assert set(kustomization["resources"]) == {"..", *files} - {"kustomization.yaml"}


@pytest.mark.parametrize("name", ["bridge", "worker"])
def test_the_members_of_compose_get_settings_of_a_cluster(name: str) -> None:
    compose = read_yaml("compose.yaml")
    service = compose["services"][name]
    settings = load_settings(DEPLOY / "gateway.toml", service["environment"])
    check_cluster(settings)
    host, port = settings.kafka.servers.split(":")
    assert host in compose["services"]
    kafka = (DEPLOY / "kafka.properties").read_text()
    assert f"advertised.listeners=PLAINTEXT://{host}:{port}\n" in kafka
    assert str(settings.cluster.secret_file) == "/run/secrets/cluster_key"
    assert {"cluster_key", "gateway_password"} <= set(service["secrets"])
