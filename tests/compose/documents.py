"""The files in ``compose/``, decoded. Variables of the compose file are not substituted."""

import re
from collections.abc import Mapping
from typing import Final

import msgspec
import yaml
from msgspec import Struct

from tests.tidy import trees

FOLDER: Final = trees.ROOT / "compose"
_PROPERTY: Final = "KAFKA_"
_OF_THE_NODE: Final = frozenset(
    {
        "KAFKA_ADVERTISED_LISTENERS",
        "KAFKA_CONTROLLER_LISTENER_NAMES",
        "KAFKA_CONTROLLER_QUORUM_VOTERS",
        "KAFKA_HEAP_OPTS",
        "KAFKA_INTER_BROKER_LISTENER_NAME",
        "KAFKA_LISTENERS",
        "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP",
        "KAFKA_LOG_DIRS",
        "KAFKA_NODE_ID",
        "KAFKA_PROCESS_ROLES",
    }
)
"""Properties with addresses, which differ for local brokers."""


class Build(Struct, forbid_unknown_fields=True):
    context: str
    dockerfile: str


class Healthcheck(Struct):
    test: list[str]


class Depends(Struct):
    condition: str


class Service(Struct):
    image: str
    build: Build | None = None
    command: list[str] = []
    environment: dict[str, str | int] = {}
    hostname: str = ""
    ports: list[str] = []
    volumes: list[str] = []
    secrets: list[str] = []
    depends_on: dict[str, Depends] = {}
    healthcheck: Healthcheck | None = None
    restart: str = ""
    deploy: dict[str, int] = {}


class Secret(Struct):
    environment: str


class Compose(Struct):
    services: dict[str, Service]
    volumes: dict[str, None]
    secrets: dict[str, Secret]

    @property
    def brokers(self) -> dict[str, Service]:
        return {
            name: service
            for name, service in self.services.items()
            if service.image.startswith("apache/kafka:")
        }

    @property
    def built_services(self) -> dict[str, Service]:
        return {name: service for name, service in self.services.items() if service.build is not None}


class Query(Struct, rename="camel"):
    expr: str
    legend_format: str
    ref_id: str


class Panel(Struct, rename="camel"):
    """A panel of the dashboard; rows have no targets."""

    id: int
    type: str
    title: str
    grid_pos: dict[str, int]
    description: str = ""
    datasource: dict[str, str] = {}
    targets: list[Query] = []


class Dashboard(Struct):
    uid: str
    panels: list[Panel]


class Targets(Struct):
    targets: list[str]


class Names(Struct):
    names: list[str]
    port: int
    type: str


class Authorization(Struct):
    credentials_file: str


class Scrape(Struct):
    job_name: str
    static_configs: list[Targets] = []
    dns_sd_configs: list[Names] = []
    authorization: Authorization | None = None

    @property
    def addresses(self) -> list[str]:
        """host:port of all targets."""
        targets = [target for static_config in self.static_configs for target in static_config.targets]
        return targets + [
            f"{name}:{dns_config.port}" for dns_config in self.dns_sd_configs for name in dns_config.names
        ]


class Scrapes(Struct):
    scrape_configs: list[Scrape]


def raw() -> object:
    """Return the decoded YAML of the compose file."""
    return yaml.safe_load((FOLDER / "compose.yaml").read_bytes())


def compose() -> Compose:
    return msgspec.convert(raw(), Compose)


def scrapes() -> list[Scrape]:
    text = (FOLDER / "prometheus.yml").read_bytes()
    return msgspec.convert(yaml.safe_load(text), Scrapes).scrape_configs


def dashboard() -> Dashboard:
    return msgspec.json.decode((FOLDER / "grafana" / "reballast.json").read_bytes(), type=Dashboard)


def expressions() -> list[str]:
    """Return the dashboard's Prometheus queries."""
    return [target.expr for panel in dashboard().panels for target in panel.targets]


METRIC: Final = r"\b(?:reballast|cluster)_\w+"
"""Pattern of our metrics; those of clusters have Karmada's names."""


def metrics_named() -> set[str]:
    """Return our metrics in the dashboard's queries."""
    return {name for expression in expressions() for name in re.findall(METRIC, expression)}


def properties(environment: Mapping[str, str | int]) -> dict[str, str]:
    """Return the brokers' properties in a service's environment, as the image sets them, without those of the node."""
    return {
        name.removeprefix(_PROPERTY).lower().replace("_", "."): str(value)
        for name, value in environment.items()
        if name.startswith(_PROPERTY) and name not in _OF_THE_NODE
    }
