"""The server conforms to its OpenAPI document, and no generated request causes a server error."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.pytest import lazy

from engine.http import openapi
from engine.http.agents import routes
from engine.http.plans import routes as plan_routes
from engine.http.query.member_routes import ROUTES
from engine.http.query.queries import QUERIES
from engine.simulation import defaults
from events import topics
from tests.api.servers import TOKEN, Served, on_a_port
from tests.projections.stories import Story
from tests.rounds import ROUNDS


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    story = Story(3)
    batch = [*story.opening(), *(record for _ in range(40) for record in story.more())]
    with on_a_port(batch, members=defaults.three_members()) as served:
        yield served


def test_every_query_is_documented() -> None:
    paths: Any = openapi.document()["paths"]

    for described in (*QUERIES, *ROUTES, *routes.ROUTES, *plan_routes.ROUTES):
        assert "/api/v1" + described.path.replace(":path", "") in paths
    assert {"/api/v1/live", "/healthz", "/readyz", "/metrics"} <= set(paths)


def test_required_parameters_and_limits_are_documented() -> None:
    described: Any = openapi.document()
    of_manifests: list[Any] = described["paths"]["/api/v1/agents/{name}/manifest"]["get"]["parameters"]
    of_records: list[Any] = described["paths"]["/api/v1/log"]["get"]["parameters"]
    fault: Any = described["components"]["schemas"]["FaultRequest"]["properties"]["amount"]["anyOf"]

    assert [field["name"] for field in of_manifests if field["required"]] == ["name", "key", "term", "step"]
    assert ["", *topics.TOPICS] in [field["schema"].get("enum") for field in of_records]
    assert {"type": "integer", "minimum": 1, "maximum": 1_000_000} in fault


def test_refused_method_names_all_methods_of_the_path(server: Served) -> None:
    answer = httpx.put(f"{server.url}/api/v1/plans/1", headers={"authorization": f"Bearer {TOKEN}"})

    assert answer.status_code == 405
    assert answer.headers["allow"] == "DELETE, GET, HEAD"


def test_path_without_a_route_is_not_redirected(server: Served) -> None:
    answer = httpx.get(f"{server.url}/bindings", headers={"authorization": f"Bearer {TOKEN}"})

    assert answer.status_code == 404


# schemathesis has few type annotations.
THEIRS: Any = schemathesis
LAZY: Any = lazy
ENDLESS = ["/api/v1/live", "/api/v1/agents/{name}/works", "/api/v1/agents/{name}/calls"]
API: Any = THEIRS.openapi.from_dict(openapi.document()).exclude(path=ENDLESS)
CHECKS: Any = [
    THEIRS.checks.not_a_server_error,
    THEIRS.checks.status_code_conformance,
    THEIRS.checks.content_type_conformance,
    THEIRS.checks.response_schema_conformance,
]
PATIENT: Any = list(HealthCheck)


# The operations alone: to generate the cases takes seconds, and each process of a run collects all tests.
OPERATIONS: list[str] = [operation.ok().label for operation in API.get_all_operations()]


@settings(max_examples=10 * ROUNDS, derandomize=True, database=None, suppress_health_check=PATIENT)
def _conforms(case: Any, server: Served) -> None:  # noqa: ANN401  # as above
    response = case.call(base_url=server.url, headers={"authorization": f"Bearer {TOKEN}"}, timeout=60)

    case.validate_response(response, checks=CHECKS)


@pytest.mark.slow
@pytest.mark.parametrize("operation", OPERATIONS)
def test_server_conforms_to_its_openapi_document(operation: str, server: Served) -> None:
    only = API.include(name=operation)

    (made,) = LAZY.get_all_tests(schema=only, test_func=_conforms, settings=None, given_kwargs=None)

    _, conforms = made.ok()
    conforms(server=server)
