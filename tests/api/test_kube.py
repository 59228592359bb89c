"""The Kubernetes API without kubectl: accepted requests, and refusals as in Kubernetes."""

import asyncio
import itertools
import json
import random
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import cast

import httpx
import pytest

from engine.http.kube.app import create_app
from engine.http.services import Services
from events.json_values import Json
from tests.api.servers import NOW_MS, TOKEN, serving
from tests.builders.manifests import config_map, override_policy, policy

MAPS = "/api/v1/namespaces/default/configmaps"
POLICIES = "/apis/policy.karmada.io/v1alpha1/namespaces/default/propagationpolicies"
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@asynccontextmanager
async def api() -> AsyncGenerator[tuple[httpx.AsyncClient, Services]]:
    async with serving() as services:
        transport = httpx.ASGITransport(create_app(services, lambda: NOW_MS), raise_app_exceptions=False)
        headers = {"authorization": f"Bearer {TOKEN}"}
        async with httpx.AsyncClient(transport=transport, base_url="http://kube", headers=headers) as client:
            yield client, services


async def made(client: httpx.AsyncClient, value: Json) -> Json:
    answer = await client.post(MAPS, json=value)
    assert answer.status_code == 201, answer.text
    return cast("Json", answer.json())


def version(value: Json) -> str:
    return str(cast("Json", value["metadata"])["resourceVersion"])


async def test_object_is_created_updated_and_deleted() -> None:
    async with api() as (client, _):
        one = await made(client, config_map("one", a="1"))
        again = await client.post(MAPS, json=config_map("one"))
        assert (again.status_code, again.json()["reason"]) == (409, "AlreadyExists")

        one["data"] = {"a": "2"}
        replaced = (await client.put(f"{MAPS}/one", json=one)).json()
        assert int(version(replaced)) > int(version(one))
        late = await client.put(f"{MAPS}/one", json=one)
        assert (late.status_code, late.json()["reason"]) == (409, "Conflict")

        wrong = {"preconditions": {"uid": "another"}}
        kept = await client.request("DELETE", f"{MAPS}/one", json=wrong)
        assert kept.status_code == 409
        deleted = await client.delete(f"{MAPS}/one")
        assert deleted.json()["status"] == "Success"
        gone = await client.get(f"{MAPS}/one")
        assert gone.json()["message"] == 'configmaps "one" not found'


async def test_concurrent_creates_each_get_their_own_answer() -> None:
    async with api() as (client, services):
        names = [*(f"many-{index}" for index in range(40)), "many-7", "Not A Name", "many-9"]
        made_all = await asyncio.gather(*(client.post(MAPS, json=config_map(name)) for name in names))
        codes = [answer.status_code for answer in made_all]
        assert codes == [201] * 40 + [409, 422, 409]
        for name, answer in zip(names[:40], made_all, strict=False):
            assert answer.json()["metadata"]["name"] == name
            assert answer.json() == (await client.get(f"{MAPS}/{name}")).json(), "as it is shown later"
        traced = await client.post(MAPS, json=config_map("traced"), headers={"traceparent": TRACE})
        last = (await services.log.read_all(int(version(traced.json())) - 1, 1))[0]
        assert last.headers["ce_traceparent"].split("-")[1] == TRACE.split("-")[1]


async def test_invalid_delete_options_delete_nothing() -> None:
    async with api() as (client, _):
        await made(client, config_map("one"))
        for wrong in (
            {"propagationPolicy": "Sideways"},
            {"propagationPolicy": "Orphan", "orphanDependents": True},
            {"dryRun": ["Some"]},
        ):
            for path in (f"{MAPS}/one", MAPS):
                refused = await client.request("DELETE", path, json=wrong)
                assert (refused.status_code, refused.json()["reason"]) == (422, "Invalid")
        # A dry run can be requested in the body too, of a collection as of one object.
        for path in (f"{MAPS}/one", MAPS):
            assert (await client.request("DELETE", path, json={"dryRun": ["All"]})).status_code == 200
        assert (await client.get(f"{MAPS}/one")).status_code == 200


async def test_generated_names_are_unique() -> None:
    async with api() as (client, _):
        value: Json = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "log-"}}
        names = [cast("Json", (await made(client, value))["metadata"])["name"] for _ in range(3)]
        assert len(set(names)) == 3
        assert all(str(name).startswith("log-") for name in names)


async def test_yaml_body_is_accepted() -> None:
    async with api() as (client, _):
        body = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\ndata: {a: 'yes'}\n"
        answer = await client.post(MAPS, content=body, headers={"content-type": "application/yaml"})
        assert answer.json()["data"] == {"a": "yes"}


async def test_builtin_kind_may_be_omitted_from_a_body_and_custom_kind_may_not() -> None:
    async with api() as (client, _):
        made_one = await client.post(MAPS, json={"metadata": {"name": "one"}})
        assert (made_one.status_code, made_one.json()["kind"]) == (201, "ConfigMap")
        assert (await client.put(f"{MAPS}/one", json={"metadata": {"name": "one"}})).status_code == 200
        refused = await client.post(POLICIES, json={"metadata": {"name": "one"}, "spec": {}})
        assert refused.status_code == 400


async def test_paged_list_is_a_snapshot_of_its_first_page() -> None:
    async with api() as (client, _):
        for name in "dacb":
            await made(client, config_map(name))
        first = (await client.get(MAPS, params={"limit": 3})).json()
        await made(client, config_map("e"))
        token = first["metadata"]["continue"]
        rest = (await client.get(MAPS, params={"limit": 3, "continue": token})).json()
        names = [item["metadata"]["name"] for item in (*first["items"], *rest["items"])]
        assert names == ["a", "b", "c", "d", "e"]
        assert version(rest) == version(first), "so that a watch from it tells what came meanwhile"
        assert (await client.get(MAPS, params={"continue": "nonsense"})).status_code == 400


async def test_tables_and_partial_metadata_are_rendered() -> None:
    async with api() as (client, _):
        await made(client, config_map("one", a="1"))
        table = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"}
        shown = (await client.get(MAPS, headers=table)).json()
        assert [row["cells"][:2] for row in shown["rows"]] == [["one", 1]]
        partial = {"accept": "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"}
        alone = (await client.get(MAPS, headers=partial)).json()
        assert set(alone["items"][0]) == {"apiVersion", "kind", "metadata"}


async def watched(services: Services, path: str, count: int) -> list[Json]:
    """Return the first lines of a watch, read directly from the application."""
    lines: list[Json] = []
    done = asyncio.Event()
    target, _, query = path.partition("?")
    scope = {
        "type": "http",
        "method": "GET",
        "path": target,
        "query_string": query.encode(),
        "headers": [(b"authorization", f"Bearer {TOKEN}".encode())],
    }

    async def receive() -> Json:
        await done.wait()
        return {"type": "http.disconnect"}

    async def send(message: Json) -> None:
        lines.extend(json.loads(line) for line in cast("bytes", message.get("body", b"")).splitlines())
        if len(lines) >= count:
            done.set()

    app = create_app(services, lambda: NOW_MS)
    async with asyncio.timeout(5):
        await app(scope, receive, send)  # pyright: ignore[reportArgumentType]
    return lines


def events_of(lines: list[Json]) -> list[str]:
    return [
        f"{line['type']} {cast('Json', cast('Json', line['object'])['metadata'])['name']}" for line in lines
    ]


async def test_watch_continues_from_any_number() -> None:
    async with api() as (client, services):
        await made(client, config_map("one"))
        listed = (await client.get(MAPS)).json()
        await made(client, config_map("two"))
        await client.patch(
            f"{MAPS}/one",
            content='{"data":{"a":"b"}}',
            headers={"content-type": "application/merge-patch+json"},
        )
        await client.delete(f"{MAPS}/two")
        path = f"{MAPS}?watch=true&resourceVersion={version(listed)}"
        seen = events_of(await watched(services, path, 3))
        assert seen == ["ADDED two", "MODIFIED one", "DELETED two"]
        everything = await watched(services, f"{MAPS}?watch=true", 1)
        assert events_of(everything) == ["ADDED one"]


async def test_streamed_list_of_a_watch_ends_with_a_bookmark() -> None:
    async with api() as (client, services):
        await made(client, config_map("one"))
        query = "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
        first, mark = await watched(services, f"{MAPS}?{query}", 2)
        assert events_of([first]) == ["ADDED one"]
        metadata = cast("Json", cast("Json", mark["object"])["metadata"])
        assert mark["type"] == "BOOKMARK"
        assert metadata["annotations"] == {"k8s.io/initial-events-end": "true"}


async def test_watch_from_a_future_number_is_expired() -> None:
    async with api() as (client, _):
        answer = await client.get(MAPS, params={"watch": "true", "resourceVersion": "999999"})
        assert (answer.status_code, answer.json()["reason"]) == (410, "Expired")


async def test_collection_is_deleted_by_a_selector() -> None:
    async with api() as (client, _):
        for name, colour in (("one", "red"), ("two", "blue")):
            value = config_map(name)
            cast("Json", value["metadata"])["labels"] = {"colour": colour}
            await made(client, value)
        await client.request("DELETE", MAPS, params={"labelSelector": "colour=red"})
        left = (await client.get(MAPS)).json()["items"]
        assert [item["metadata"]["name"] for item in left] == ["two"]


async def test_policy_gets_defaults_and_keeps_its_permanent_id() -> None:
    async with api() as (client, _):
        body = policy("p")
        made_one = (await client.post(POLICIES, json=body)).json()
        assert made_one["spec"]["schedulerName"] == "default-scheduler"
        assert made_one["spec"]["resourceSelectors"][0]["namespace"] == "default"
        made_one["metadata"]["labels"] = {}
        denied = await client.put(f"{POLICIES}/p", json=made_one)
        assert denied.status_code == 403
        assert (
            'admission webhook "propagationpolicy.karmada.io" denied the request' in denied.json()["message"]
        )


async def test_refused_request_writes_no_event() -> None:
    async with api() as (client, services):
        await made(client, config_map("one"))
        before = services.log.last_number()
        refused = [
            await client.post(MAPS, content=b"{"),
            await client.post(MAPS, json=config_map("Not A Name")),
            await client.post(MAPS, json=config_map("one")),
            await client.post(MAPS.replace("default", "nowhere"), json=config_map("two")),
            await client.post(MAPS, json={**config_map("two"), "kind": "Secret"}),
            await client.post(MAPS, json=config_map("two"), params={"dryRun": "All"}),
            await client.put(f"{MAPS}/nobody", json=config_map("nobody")),
            await client.patch(f"{MAPS}/one", content="[]", headers={"content-type": "text/plain"}),
            await client.delete("/api/v1/namespaces/default"),
        ]
        codes = [answer.status_code for answer in refused]
        assert codes == [400, 422, 409, 404, 400, 201, 404, 415, 403]
        assert services.log.last_number() == before


@pytest.mark.parametrize("seed", range(4))
async def test_random_requests_never_cause_a_server_error(seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311  # a seed makes it the same each time
    async with api() as (client, _):
        await made(client, config_map("one", a="1"))
        for _ in range(150):
            method = chance.choice(("GET", "POST", "PUT", "PATCH", "DELETE"))
            answer = await client.request(
                method,
                chance.choice(PATHS),
                params={"fieldManager": "me", chance.choice(NAMES): chance.choice(VALUES)},
                content=chance.choice(BODIES),
                headers={"content-type": chance.choice(TYPES), "accept": chance.choice(ACCEPTS)},
            )
            assert answer.status_code < 500, (method, answer.request.url, answer.request.content, answer.text)
        assert (await client.get("/readyz")).text == "ok"


CLUSTERS = "/apis/cluster.karmada.io/v1alpha1/clusters"
PATHS = (
    MAPS,
    f"{MAPS}/one",
    f"{MAPS}/one/status",
    POLICIES,
    f"{POLICIES}/one",
    CLUSTERS,
    f"{CLUSTERS}/one",
    "/apis/apps/v1/namespaces/default/deployments/one/scale",
    "/apis/apps/v1/deployments",
    "/api/v1/namespaces",
    "/api/v1/namespaces/one/finalize",
    "/api/v1/namespaces/default/events",
    "/apis/work.karmada.io/v1alpha2/resourcebindings",
    "/apis/work.karmada.io/v1alpha1/namespaces/karmada-es-x/works/y",
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
    "/apis//v1/x",
    "/apis/%00/v1/%ff/..",
    "/api/v1/namespaces//configmaps",
    "/openapi/v3/apis/apps/v1",
)
NAMES = (
    "labelSelector",
    "fieldSelector",
    "limit",
    "continue",
    "resourceVersion",
    "fieldManager",
    "dryRun",
    "force",
)
VALUES = (
    "",
    "a=b",
    "a in (",
    "metadata.name=one",
    "5",
    "-1",
    "9" * 30,
    "All",
    "true",
    "kubectl",
    "\u0660",
    "\x00",
)
TYPES = (
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
    "text/plain",
)
ACCEPTS = (
    "*/*",
    "application/json;as=Table;v=v1;g=meta.k8s.io",
    "application/json;as=PartialObjectMetadata;v=v1",
)
_HEADS = (
    {"apiVersion": "v1", "kind": "ConfigMap"},
    {"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster"},
    {"apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy"},
    {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"},
)
_PARTS: tuple[Json, ...] = (
    {},
    {"metadata": None},
    {"metadata": []},
    {"metadata": {"name": "one"}},
    {"metadata": {"name": 5}},
    {"metadata": {"name": "one", "labels": ["x"], "finalizers": {"a": 1}}},
    {"metadata": {"name": "one", "managedFields": [{"manager": "x", "operation": "Apply", "fieldsV1": "?"}]}},
    {"metadata": {"name": "one", "resourceVersion": "-3", "uid": 4}},
    {
        "metadata": {"name": "one"},
        "spec": {"taints": [{"key": "a", "effect": "NoExecute", "timeAdded": "?"}]},
    },
    {
        "metadata": {"name": "one"},
        "spec": {"resourceSelectors": [None], "placement": 3},
        "data": {"a": 10**30},
    },
    {"metadata": {"name": "one"}, "spec": {"versions": [[]], "names": []}, "status": 4},
)
BODIES = (
    b"",
    b"null",
    b"[]",
    b"[{}]",
    b'[{"op":"remove","path":"/metadata"}]',
    b'[{"op":"add","path":"/spec/x/-","value":1}]',
    b"k8s\x00\x0a\x03",
    b'{"$patch":"replace"}',
    b'{"a":' * 5_000,
    b"&a [*a, *a]",
    b'{"metadata":{"name":"\\ud800"}}',
    *(json.dumps({**head, **part}).encode() for head, part in itertools.product(_HEADS, _PARTS)),
)


def _field(number: int, value: bytes) -> bytes:
    """Return a protobuf field with a text or a nested message shorter than 128 bytes."""
    return bytes((number << 3 | 2, len(value))) + value


async def test_delete_options_are_read_from_protobuf() -> None:
    async with api() as (client, _):
        one = await made(client, config_map("one"))
        uid = str(cast("Json", one["metadata"])["uid"])

        async def delete(wanted: str) -> httpx.Response:
            options = _field(2, _field(1, wanted.encode())) + _field(4, b"Background")
            kind = _field(1, b"v1") + _field(2, b"DeleteOptions")
            body = b"k8s\0" + _field(1, kind) + _field(2, options)
            head = {"content-type": "application/vnd.kubernetes.protobuf"}
            return await client.request("DELETE", f"{MAPS}/one", content=body, headers=head)

        refused = await delete("another")
        assert (refused.status_code, refused.json()["reason"]) == (409, "Conflict")
        assert (await delete(uid)).json()["status"] == "Success"
        assert (await client.get(f"{MAPS}/one")).status_code == 404


async def test_malformed_protobuf_delete_options_are_refused() -> None:
    async with api() as (client, _):
        await made(client, config_map("one"))
        head = {"content-type": "application/vnd.kubernetes.protobuf"}
        for body in (b"k8s\0", b"k8s\0\xff", b"{}"):
            answer = await client.request("DELETE", f"{MAPS}/one", content=body, headers=head)
            assert (answer.status_code, answer.json()["reason"]) == (400, "BadRequest")
        assert (await client.get(f"{MAPS}/one")).status_code == 200


async def test_invalid_field_of_a_stored_kind_is_reported_once() -> None:
    overrides = "/apis/policy.karmada.io/v1alpha1/namespaces/default/overridepolicies"
    image = {"component": "Name", "operator": "add"}
    wrong = override_policy("wrong", {"overriders": {"imageOverrider": [image]}}, {})
    async with api() as (client, _):
        answer = (await client.post(overrides, json=wrong)).json()
    told = [each["field"] for each in answer["details"]["causes"]]
    rules = "spec.overrideRules"
    assert told == [f"{rules}[0].overriders.imageOverrider[0].component", f"{rules}[1].overriders"]


TWICE = """
apiVersion: v1
kind: ConfigMap
metadata: {name: twice}
data:
  a: one
  a: two
"""
TWICE_IN_BRACES = (
    '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"twice"},"data":{"a":"1","a":"two"}}'
)


@pytest.mark.parametrize("text", [TWICE, TWICE_IN_BRACES, TWICE_IN_BRACES.replace('"', "")])
@pytest.mark.parametrize(
    ("method", "path", "kind"),
    [("POST", MAPS, "application/yaml"), ("PATCH", f"{MAPS}/twice", "application/apply-patch+yaml")],
)
async def test_duplicate_yaml_fields_are_reported(text: str, method: str, path: str, kind: str) -> None:
    async with api() as (client, _):

        async def asked(validation: str) -> httpx.Response:
            query = {"fieldValidation": validation, "fieldManager": "one"}
            headers = {"content-type": kind}
            spaced = text.replace(":", ": ")
            return await client.request(method, path, params=query, content=spaced, headers=headers)

        refused = await asked("Strict")
        assert (refused.status_code, refused.json()["reason"]) == (400, "BadRequest")
        assert 'strict decoding error: duplicate field "data.a"' in refused.json()["message"]
        for validation, warnings in (("Warn", ['299 - "duplicate field \\"data.a\\""']), ("Ignore", [])):
            answer = await asked(validation)
            assert answer.status_code == 201, answer.text
            assert answer.json()["data"] == {"a": "two"}
            assert answer.headers.get_list("warning") == warnings
            await client.delete(f"{MAPS}/twice")
