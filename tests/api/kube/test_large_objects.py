"""Objects that are too large or too deep for the log, and short requests that make large objects."""

import threading

import httpx
import pytest

from engine.writing.edits.applying import Application
from engine.writing.edits.objects import Creation, RequestedEdit
from engine.writing.edits.patching import Patch
from engine.writing.mutations import Edited
from events.json_values import Json
from events.kube_objects import KubeObject
from tests.api.kube.client import MAPS, POLICIES, api, create
from tests.builders.manifests import cluster, config_map, policy, selector

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
SHIPS = "/apis/example.io/v1/namespaces/default/ships"
CLUSTERS = "/apis/cluster.karmada.io/v1alpha1/clusters"
JSON_PATCH = {"content-type": "application/json-patch+json"}
MERGE = {"content-type": "application/merge-patch+json"}
APPLY = {"content-type": "application/apply-patch+yaml"}


def ship(name: str, **spec: object) -> Json:
    return {"apiVersion": "example.io/v1", "kind": "Ship", "metadata": {"name": name}, "spec": spec}


async def define_ships(client: httpx.AsyncClient) -> None:
    part = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"type": "object", "properties": {"spec": part, "status": part}}
    version: Json = {
        "name": "v1",
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": schema},
    }
    names = {"plural": "ships", "kind": "Ship"}
    spec: Json = {"group": "example.io", "scope": "Namespaced", "names": names, "versions": [version]}
    definition: Json = {"metadata": {"name": "ships.example.io"}, "spec": spec}
    assert (await client.post(DEFINITIONS, json=definition)).status_code == 201


def nested(levels: int) -> object:
    value: object = 1
    for _ in range(levels):
        value = {"a": value}
    return value


def deepening(levels: int, path: str) -> list[Json]:
    """Return a JSON patch that nests a value once more with each three operations."""
    begin: list[Json] = [{"op": "add", "path": "/y", "value": {}}]
    deepen: list[Json] = [
        {"op": "add", "path": "/x", "value": {}},
        {"op": "move", "from": "/y", "path": "/x/y"},
        {"op": "move", "from": "/x", "path": "/y"},
    ]
    return [*begin, *(deepen * levels), {"op": "move", "from": "/y", "path": path}]


async def test_object_that_the_log_would_refuse_is_not_written() -> None:
    async with api() as (client, services):
        await define_ships(client)
        assert (await client.post(SHIPS, json=ship("one", a=nested(57)))).status_code == 201
        before = services.log.last_number()
        for levels in (60, 61, 62):  # the entries of managedFields are nested more deeply than the fields
            answer = await client.post(SHIPS, json=ship("two", a=nested(levels)))
            assert (answer.status_code, answer.json()["reason"]) == (400, "BadRequest")
            assert "nested deeper than" in answer.json()["message"]
        assert services.log.last_number() == before


@pytest.mark.parametrize("levels", [70, 200, 1_500])
async def test_patch_that_nests_ever_more_deeply_is_refused(levels: int) -> None:
    async with api() as (client, services):
        await define_ships(client)
        body = policy("one", None, selector())
        for path, value in ((SHIPS, ship("one", a=1)), (MAPS, config_map("one")), (POLICIES, body)):
            assert (await client.post(path, json=value)).status_code == 201
        before = services.log.last_number()
        for path, where in (
            (SHIPS, "/spec/y"),
            (MAPS, "/data"),
            (POLICIES, "/metadata/labels"),
            (POLICIES, "/spec/placement"),
        ):
            patch = deepening(levels, where)
            answer = await client.patch(f"{path}/one", json=patch, headers=JSON_PATCH)
            assert answer.status_code in (400, 422), answer.text
            copying = [*patch, {"op": "copy", "from": where, "path": "/copied"}]
            answer = await client.patch(f"{path}/one", json=copying, headers=JSON_PATCH)
            assert answer.status_code in (400, 422), answer.text
        assert services.log.last_number() == before


async def test_status_that_does_not_fit_into_a_record_is_refused() -> None:
    async with api() as (client, services):
        await define_ships(client)
        assert (await client.post(SHIPS, json=ship("one"))).status_code == 201
        assert (await client.post(CLUSTERS, json=cluster("one"))).status_code == 201
        before = services.log.last_number()
        condition = {"type": "Odd", "status": "True", "message": "x" * 2_500_000}
        amounts = {f"example.io/{number}": "1" for number in range(110_000)}
        for path, status in (
            (f"{CLUSTERS}/one", {"conditions": [condition]}),
            (f"{CLUSTERS}/one", {"resourceSummary": {"allocatable": amounts}}),
            # The status alone fits, but not together with the owners of its fields.
            (f"{SHIPS}/one", {f"{number:06d}": 1 for number in range(90_000)}),
        ):
            answer = await client.patch(f"{path}/status", json={"status": status}, headers=MERGE)
            assert (answer.status_code, answer.json()["reason"]) == (413, "RequestEntityTooLarge")
        assert services.log.last_number() == before


async def test_short_requests_for_large_objects_are_computed_in_threads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    on_loop: list[bool] = []

    def watch(kind: type[RequestedEdit]) -> None:
        original = kind.apply

        def apply(self: RequestedEdit, live: KubeObject | None) -> Edited:
            on_loop.append(threading.current_thread() is threading.main_thread())
            return original(self, live)

        monkeypatch.setattr(kind, "apply", apply)

    for kind in (Application, Creation, Patch):
        watch(kind)
    head = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: two}\n"
    text = f"{head}data: {{a: &a {'x' * 100}, b: *a}}"
    copied = [{"op": "copy", "from": "/data", "path": "/binaryData"}]
    async with api() as (client, _):
        await create(client, config_map("one"))
        assert on_loop == [True]
        await client.post(MAPS, content=text, headers={"content-type": "application/yaml"})
        await client.patch(f"{MAPS}/two?fieldManager=me&force=true", content=text, headers=APPLY)
        await client.patch(f"{MAPS}/one", json=copied, headers=JSON_PATCH)
    assert on_loop == [True, False, False, False]
