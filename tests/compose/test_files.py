"""The compose file is consistent with itself, with the specification, and with the program that it starts.

``compose-spec.json`` is the unchanged schema of the Compose Specification, under the Apache License 2.0.
"""

import base64
import dataclasses
import itertools
import json
import re
import tomllib
from pathlib import Path
from typing import Final

import pytest

from engine.cli import main
from events import release
from tests.compose import documents
from tests.events.json_schemas import is_valid
from tests.tidy import trees

COMPOSE: Final = documents.compose()
OPTION: Final = re.compile(r"--[a-z-]+")


def listens_on(service: documents.Service) -> int:
    """Return the port of one of our command lines."""
    words = service.command
    return int(next(words[i + 1] for i, word in enumerate(words) if word in {"--port", "--metrics-port"}))


def test_compose_file_matches_the_specification() -> None:
    schema = json.loads((Path(__file__).parent / "compose-spec.json").read_bytes())
    assert is_valid(schema, documents.raw())
    assert not is_valid(schema, {"services": {"kafka": {"imge": "apache/kafka:4.3.1"}}})


def test_services_are_three_brokers_two_workers_an_api_and_metrics() -> None:
    assert len(COMPOSE.brokers) == 3
    assert COMPOSE.services["worker"].deploy == {"replicas": 2}
    assert "--members" in COMPOSE.services["api"].command
    assert set(COMPOSE.services) == {*COMPOSE.brokers, "worker", "api", "prometheus", "grafana"}


@pytest.mark.parametrize("name", COMPOSE.services)
def test_each_service_is_pinned_health_checked_and_restarted(name: str) -> None:
    service = COMPOSE.services[name]
    _, _, tag = service.image.partition(":")
    assert re.fullmatch(r"v?\d+\.\d+\.\d+", tag), service.image
    assert service.restart == "unless-stopped"
    assert service.healthcheck is not None


def test_own_image_is_tagged_with_the_release() -> None:
    assert {service.image for service in COMPOSE.built_services.values()} == {f"reballast:{release.RELEASE}"}
    assert f"reballast:{release.RELEASE}" in (documents.FOLDER / "Containerfile").read_text()


@pytest.mark.parametrize("name", COMPOSE.built_services)
def test_each_own_command_line_is_parsed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    service = COMPOSE.services[name]
    for variable, value in service.environment.items():
        monkeypatch.setenv(variable, str(value))
    command, bound, ignored = main.make_app().parse_args(
        service.command, exit_on_error=False, print_error=False
    )
    assert command.__name__ == service.command[0]
    assert bound.arguments["log"] == service.environment["REBALLAST_LOG"]
    assert not ignored
    option_names = {word[2:].replace("-", "_") for word in service.command if OPTION.fullmatch(word)}
    groups = [value for value in bound.arguments.values() if dataclasses.is_dataclass(value)]
    names = {field.name for group in groups for field in dataclasses.fields(group)}
    assert option_names <= bound.arguments.keys() | names


def test_each_own_variable_is_read_by_the_program() -> None:
    sources = "".join(path.read_text() for path in trees.modules() if "engine" in path.parts)
    named = {name for service in COMPOSE.built_services.values() for name in service.environment}
    named |= {secret.environment for secret in COMPOSE.secrets.values()}
    assert {name for name in named if f'"{name}"' not in sources} == set()


def test_mounted_files_and_volumes_exist() -> None:
    kept = [volume.split(":")[0] for service in COMPOSE.services.values() for volume in service.volumes]
    files = {name for name in kept if name.startswith(".")}
    assert sorted(set(kept) - files) == sorted(COMPOSE.volumes)
    assert all((documents.FOLDER / name).is_file() for name in files)
    mounted = [
        volume for service in COMPOSE.services.values() for volume in service.volumes if volume[0] == "."
    ]
    assert all(volume.endswith(":ro") for volume in mounted)
    assert {name for service in COMPOSE.services.values() for name in service.secrets} == set(COMPOSE.secrets)
    assert all(set(service.depends_on) <= set(COMPOSE.services) for service in COMPOSE.services.values())
    assert all(
        needed.condition == "service_healthy"
        for service in COMPOSE.services.values()
        for needed in service.depends_on.values()
    )


def test_nothing_listens_beyond_the_loopback() -> None:
    published = [port for service in COMPOSE.services.values() for port in service.ports]
    assert all(re.fullmatch(r"127\.0\.0\.1:(\d+):\1", port) for port in published), published
    assert len(set(published)) == len(published)


def test_brokers_form_one_cluster_at_their_advertised_addresses() -> None:
    voters: set[str] = set()
    for number, (name, broker) in enumerate(COMPOSE.brokers.items(), 1):
        settings = {key: str(value) for key, value in broker.environment.items()}
        listeners = dict(listener.split("://") for listener in settings["KAFKA_LISTENERS"].split(","))
        advertised = dict(
            listener.split("://") for listener in settings["KAFKA_ADVERTISED_LISTENERS"].split(",")
        )
        protocols = dict(
            entry.split(":") for entry in settings["KAFKA_LISTENER_SECURITY_PROTOCOL_MAP"].split(",")
        )
        assert broker.hostname == name
        assert settings["KAFKA_NODE_ID"] == str(number)
        assert listeners.keys() == protocols.keys() == {"HOST", "INTERNAL", "CONTROLLER"}
        assert advertised == {
            "HOST": f"localhost{listeners['HOST']}",
            "INTERNAL": f"{name}{listeners['INTERNAL']}",
        }
        assert broker.ports == [f"127.0.0.1{listeners['HOST']}{listeners['HOST']}"]
        assert broker.healthcheck is not None
        assert broker.healthcheck.test[1] == f"nc -z localhost {listeners['INTERNAL'][1:]}"
        voters.add(f"{number}@{name}{listeners['CONTROLLER']}")
        assert f"{name}{listeners['INTERNAL']}" in str(
            COMPOSE.services["worker"].environment["REBALLAST_LOG"]
        )
        assert broker.volumes == [f"{name}:{settings['KAFKA_LOG_DIRS']}"]
    others = [
        {key: value for key, value in broker.environment.items() if key not in {"KAFKA_NODE_ID"} | _LISTENERS}
        for broker in COMPOSE.brokers.values()
    ]
    assert all(settings == others[0] for settings in others)
    assert set(str(others[0]["KAFKA_CONTROLLER_QUORUM_VOTERS"]).split(",")) == voters


def test_cluster_id_has_the_format_of_kafka() -> None:
    (cluster_id,) = {str(broker.environment["CLUSTER_ID"]) for broker in COMPOSE.brokers.values()}
    uuid = base64.urlsafe_b64decode(f"{cluster_id}==")
    assert len(uuid) == 16
    assert base64.urlsafe_b64encode(uuid).decode().rstrip("=") == cluster_id


@pytest.mark.parametrize("name", COMPOSE.built_services)
def test_each_health_check_queries_the_port_of_its_process(name: str) -> None:
    service = COMPOSE.services[name]
    assert service.healthcheck is not None
    assert f"http://127.0.0.1:{listens_on(service)}/readyz" in service.healthcheck.test[-1]
    compile(service.healthcheck.test[-1], "healthcheck", "exec")
    assert service.healthcheck.test[:3] == ["CMD", "python", "-c"]


def test_prometheus_scrapes_each_process_at_its_port() -> None:
    scrapes = {scrape.job_name: scrape for scrape in documents.scrapes()}
    assert set(scrapes) == {"worker", "api", "agent"} == {*COMPOSE.built_services, "agent"}
    for name in COMPOSE.built_services:
        assert scrapes[name].addresses == [f"{name}:{listens_on(COMPOSE.services[name])}"]
    # Agents are not started here; their documented address is used.
    (address,) = scrapes["agent"].addresses
    port = address.removeprefix("agent:")
    readme = (documents.FOLDER / "README.md").read_text()
    assert f"`{address}/metrics`" in readme
    assert f"--metrics-port {port}" in readme
    # One address per worker, for any number of workers.
    assert scrapes["worker"].dns_sd_configs[0].type == "A"


def test_prometheus_has_the_token_of_the_api() -> None:
    authorization = next(scrape for scrape in documents.scrapes() if scrape.job_name == "api").authorization
    assert authorization is not None
    secret = authorization.credentials_file.removeprefix("/run/secrets/")
    assert COMPOSE.services["prometheus"].secrets == [secret]
    variable = COMPOSE.secrets[secret].environment
    expected = str(COMPOSE.services["api"].environment[variable])
    # Without a token nothing starts.
    assert re.fullmatch(rf"\$\{{{variable}:\?[^}}]+\}}", expected)


def test_grafana_finds_prometheus_and_the_dashboard() -> None:
    listed = [volume.split(":") for volume in COMPOSE.services["grafana"].volumes]
    mounted = {inside: Path(outside).name for outside, inside, *_ in listed}
    assert mounted["/etc/grafana/provisioning/datasources/reballast.yml"] == "datasources.yml"
    assert mounted["/etc/grafana/provisioning/dashboards/reballast.yml"] == "dashboards.yml"
    dashboard = COMPOSE.services["grafana"].environment["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    assert mounted[str(dashboard)] == "reballast.json"
    folder = documents.FOLDER / "grafana"
    assert f"path: {Path(str(dashboard)).parent}" in (folder / "dashboards.yml").read_text()
    sources = (folder / "datasources.yml").read_text()
    assert "url: http://prometheus:9090" in sources
    used = {panel.datasource["uid"] for panel in documents.dashboard().panels if panel.targets}
    assert [f"uid: {uid}" in sources for uid in used] == [True]


def test_panels_do_not_overlap() -> None:
    panels = documents.dashboard().panels
    assert len({panel.id for panel in panels}) == len(panels)
    assert len({panel.title for panel in panels}) == len(panels)
    for position, other in itertools.combinations([panel.grid_pos for panel in panels], 2):
        beside = position["x"] + position["w"] <= other["x"] or other["x"] + other["w"] <= position["x"]
        above = position["y"] + position["h"] <= other["y"] or other["y"] + other["h"] <= position["y"]
        assert beside or above, f"{position} lies on {other}"
    assert all(panel.grid_pos["x"] + panel.grid_pos["w"] <= 24 for panel in panels)


def test_image_is_built_from_files_of_the_repository() -> None:
    text = (documents.FOLDER / "Containerfile").read_text()
    build = COMPOSE.services["api"].build
    assert build is not None
    assert ((documents.FOLDER / build.context).resolve(), build.dockerfile) == (
        trees.ROOT,
        "compose/Containerfile",
    )
    copied = [
        word for words in re.findall(r"^COPY (?!--)(.+) \S+$", text, re.MULTILINE) for word in words.split()
    ]
    let_in = {
        line[1:]
        for line in (documents.FOLDER / "Containerfile.dockerignore").read_text().split()
        if line[0] == "!"
    }
    assert set(copied) == let_in
    assert all((trees.ROOT / name).exists() for name in copied)
    project = tomllib.loads((trees.ROOT / "pyproject.toml").read_text())
    assert set(project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]) <= let_in
    assert {project["project"]["readme"], *project["project"]["license-files"]} <= let_in
    (python,) = set(re.findall(r"^FROM python:(\d+\.\d+)-slim-bookworm", text, re.MULTILINE))
    assert f">={python}" == project["project"]["requires-python"]
    assert "--require-hashes -r requirements.lock" in text
    (entry,) = re.findall(r'^ENTRYPOINT \["(.+)"\]$', text, re.MULTILINE)
    assert entry in project["project"]["scripts"]
    assert re.search(r"^USER reballast$", text, re.MULTILINE)


_LISTENERS: Final = frozenset({"KAFKA_LISTENERS", "KAFKA_ADVERTISED_LISTENERS"})
