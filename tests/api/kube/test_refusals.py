"""Refusals of invalid requests: status codes and messages; none of them writes an event."""

import asyncio
import base64
import dataclasses

import pytest

from engine.observer.report import Report
from events.json_values import Json, object_at
from projections.store import Store
from tests.api.kube.client import MAPS, POLICIES, api, create
from tests.api.servers import kube_client, serving
from tests.builders.manifests import config_map, policy, selector

SECRETS = "/api/v1/namespaces/default/secrets"
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
MERGE = {"content-type": "application/merge-patch+json"}


@pytest.mark.parametrize(
    ("path", "value", "why"),
    [
        (
            MAPS,
            {"data": {"a": 1}},
            "json: cannot unmarshal number into Go struct field ConfigMap.data of type string",
        ),
        (SECRETS, {"data": {"a": "no base64"}}, "illegal base64 data at input byte 2"),
        (MAPS, {"kind": "Secret"}, "converting (v1.Secret) to (core.ConfigMap): unknown conversion"),
    ],
)
async def test_value_of_wrong_type_is_not_stored(path: str, value: Json, why: str) -> None:
    async with api() as (client, services):
        before = services.log.last_number()
        answer = await client.post(path, json={"metadata": {"name": "one"}, **value})
        assert (answer.status_code, answer.json()["reason"]) == (400, "BadRequest")
        assert answer.json()["message"].endswith(why)
        assert services.log.last_number() == before


@pytest.mark.parametrize(
    ("metadata", "why"),
    [
        ({"ownerReferences": "x"}, "cannot unmarshal string into Go struct field ObjectMeta.ownerReferences"),
        ({"ownerReferences": [5]}, "cannot unmarshal number into Go struct field ObjectMeta.ownerReferences"),
        ({"generateName": 5}, "cannot unmarshal number into Go struct field ObjectMeta.generateName"),
        ({"managedFields": [{"time": "noon"}]}, 'parsing time "noon"'),
    ],
)
async def test_malformed_metadata_of_other_kinds_are_not_stored(metadata: Json, why: str) -> None:
    body = policy("one", None, selector())
    async with api() as (client, services):
        assert (await client.post(POLICIES, json=body)).status_code == 201
        before = services.log.last_number()
        wrong = {**body, "metadata": {"name": "two", **metadata}}
        answer = await client.post(POLICIES, json=wrong)
        assert (answer.status_code, answer.json()["reason"]) == (400, "BadRequest")
        assert why in answer.json()["message"]
        patched = await client.patch(f"{POLICIES}/one", json={"metadata": metadata}, headers=MERGE)
        assert (patched.status_code, patched.json()["reason"]) == (422, "Invalid")
        assert why in patched.json()["message"]
        assert services.log.last_number() == before


def _field(number: int, value: bytes) -> bytes:
    """Return a protobuf field with a text or a nested message shorter than 128 bytes."""
    return bytes((number << 3 | 2, len(value))) + value


async def test_malformed_quantity_in_protobuf_is_not_stored() -> None:
    hard = _field(1, _field(1, b"cpu") + _field(2, _field(1, b"many")))
    quota = _field(1, _field(1, b"one")) + _field(2, hard)
    kind = _field(1, b"v1") + _field(2, b"ResourceQuota")
    async with api() as (client, services):
        before = services.log.last_number()
        answer = await client.post(
            "/api/v1/namespaces/default/resourcequotas",
            content=b"k8s\0" + _field(1, kind) + _field(2, quota),
            headers={"content-type": "application/vnd.kubernetes.protobuf"},
        )
        assert (answer.status_code, answer.json()["reason"]) == (400, "BadRequest"), answer.text
        assert "quantities must match the regular expression" in answer.json()["message"]
        assert services.log.last_number() == before


async def test_percentage_of_thousands_of_digits_is_invalid() -> None:
    budget = {"metadata": {"name": "one"}, "spec": {"minAvailable": "9" * 5_000 + "%"}}
    async with api() as (client, _):
        answer = await client.post("/apis/policy/v1/namespaces/default/poddisruptionbudgets", json=budget)
        assert (answer.status_code, answer.json()["reason"]) == (422, "Invalid")
        assert "must not be greater than 100%" in answer.json()["message"]


async def test_patch_to_a_value_of_wrong_type_is_invalid() -> None:
    async with api() as (client, services):
        await create(client, config_map("one", a="1"))
        before = services.log.last_number()
        answer = await client.patch(f"{MAPS}/one", json={"immutable": "yes"}, headers=MERGE)
        status = answer.json()
        assert (answer.status_code, status["reason"]) == (422, "Invalid")
        assert status["details"]["causes"][0]["field"] == "patch"
        assert "Go struct field ConfigMap.immutable of type bool" in status["message"]
        assert services.log.last_number() == before


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        (
            {"immutable": "yes"},
            "create typed patch object (/one; v1, Kind=ConfigMap): .immutable: expected boolean, got string",
        ),
        (
            {"binaryData": {"a": "no base64"}},
            "object (default/one; v1, Kind=ConfigMap) to proper version: illegal base64 data at input byte 2",
        ),
    ],
)
async def test_applied_value_of_wrong_type_is_refused(fields: Json, why: str) -> None:
    async with api() as (client, services):
        before = services.log.last_number()
        headers = {"content-type": "application/apply-patch+yaml"}
        value = config_map("one") | fields
        answer = await client.patch(f"{MAPS}/one?fieldManager=me", json=value, headers=headers)
        assert (answer.status_code, answer.json()["reason"]) == (400, "BadRequest")
        assert answer.json()["message"].endswith(why)
        assert services.log.last_number() == before


async def test_apply_with_the_uid_of_a_deleted_object_creates_no_other() -> None:
    async with api() as (client, services):
        value = await create(client, config_map("one"))
        await client.delete(f"{MAPS}/one")
        before, uid = services.log.last_number(), object_at(value, "metadata")["uid"]
        applied = {**config_map("one"), "metadata": {"name": "one", "uid": uid}}
        headers = {"content-type": "application/apply-patch+yaml"}
        answer = await client.patch(f"{MAPS}/one?fieldManager=me", json=applied, headers=headers)
        assert (answer.status_code, answer.json()["reason"]) == (409, "Conflict")
        assert f"uid mismatch: the provided object specified uid {uid}" in answer.json()["message"]
        assert services.log.last_number() == before


async def test_base64_with_line_breaks_is_stored_unchanged() -> None:
    async with api() as (client, _):
        text = base64.encodebytes(b"certificate" * 20).decode()
        answer = await client.post(SECRETS, json={"metadata": {"name": "one"}, "data": {"tls.crt": text}})
        assert answer.status_code == 201
        assert answer.json()["data"] == {"tls.crt": text}


@pytest.mark.parametrize(
    ("metadata", "code", "why"),
    [
        ({"name": "one", "resourceVersion": "99999999"}, 409, "the object has been modified"),
        ({"name": "one", "resourceVersion": "new"}, 400, 'metadata.resourceVersion: "new" is not a version'),
        ({"name": "one", "uid": "other"}, 409, "Precondition failed: UID in precondition: other"),
        ({"name": "one", "deletionTimestamp": "2026-01-01T00:00:00Z"}, 422, "field is immutable"),
        ({"name": "one", "deletionGracePeriodSeconds": 3}, 422, "field is immutable"),
        ({"name": ""}, 400, "name must be provided"),
        ({}, 400, "name must be provided"),
    ],
)
async def test_replace_with_unfit_metadata_is_refused(metadata: Json, code: int, why: str) -> None:
    async with api() as (client, services):
        await create(client, config_map("one", a="1"))
        before = services.log.last_number()
        answer = await client.put(f"{MAPS}/one", json={**config_map("one", a="2"), "metadata": metadata})
        assert answer.status_code == code
        assert why in answer.json()["message"]
        assert services.log.last_number() == before


@pytest.mark.parametrize("number", [None, "", "0"])
async def test_replacement_of_a_custom_kind_needs_a_version(number: str | None) -> None:
    async with api() as (client, services):
        value = (await client.post(POLICIES, json=policy("p"))).json()
        # ConfigMaps, and Karmada's Clusters, are replaced without a version.
        await create(client, config_map("one", a="1"))
        unversioned = config_map("one", a="2")
        unversioned["metadata"] = {"name": "one", "resourceVersion": number}
        assert (await client.put(f"{MAPS}/one", json=unversioned)).status_code == 200

        before = services.log.last_number()
        value["metadata"]["resourceVersion"] = number
        answer = await client.put(f"{POLICIES}/p", json=value)
        assert answer.status_code == 422
        assert answer.json()["message"].endswith(
            "resourceVersion: Invalid value: 0: must be specified for an update"
        )
        assert services.log.last_number() == before


@pytest.mark.parametrize("path", ["/api/v1/configmaps/one", "/apis/apps/v1/deployments/one/scale"])
@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "DELETE"])
async def test_object_of_a_namespace_has_no_path_without_it(path: str, method: str) -> None:
    async with api() as (client, _):
        await create(client, config_map("one"))
        answer = await client.request(method, path, json={}, headers=MERGE)
        assert answer.status_code == 404
        assert (await client.get(f"{MAPS}/one")).status_code == 200


async def test_patch_of_too_many_operations_is_too_large() -> None:
    async with api() as (client, _):
        await create(client, config_map("one"))
        operations: list[Json] = [{"op": "add", "path": "/data", "value": {}}] * 10_001
        headers = {"content-type": "application/json-patch+json"}
        answer = await client.patch(f"{MAPS}/one", json=operations, headers=headers)
        assert (answer.status_code, answer.json()["reason"]) == (413, "RequestEntityTooLarge")


async def test_apply_with_unknown_field_is_refused_despite_validation_ignore() -> None:
    async with api() as (client, services):
        before = services.log.last_number()
        answer = await client.patch(
            f"{MAPS}/one?fieldManager=me&fieldValidation=Ignore",
            json={**config_map("one", a="1"), "colour": "red"},
            headers={"content-type": "application/apply-patch+yaml"},
        )
        assert answer.status_code == 400
        assert answer.json()["message"].endswith("Kind=ConfigMap): .colour: field not declared in schema")
        assert services.log.last_number() == before


async def test_field_ownership_is_tracked_from_the_first_apply_on() -> None:
    async with api() as (client, _):
        await create(client, config_map("one"))
        changed = await client.patch(f"{MAPS}/one", json={"data": {"a": "1"}}, headers=MERGE)
        assert "managedFields" not in changed.json()["metadata"]
        applied = await client.patch(
            f"{MAPS}/one?fieldManager=me",
            json=config_map("one", a="2"),
            headers={"content-type": "application/apply-patch+yaml"},
        )
        assert applied.status_code == 409
        assert 'conflict with "before-first-apply" using v1: .data.a' in applied.json()["message"]


async def test_many_warnings_are_truncated_as_in_kubernetes() -> None:
    async with api() as (client, _):
        await create(client, config_map("one", a="1"))
        unknown = {f"field{index}": 1 for index in range(30_000)}
        answer = await client.patch(f"{MAPS}/one", json=unknown, headers=MERGE)
        assert answer.status_code == 200
        warnings = answer.headers.get_list("warning")
        assert warnings[0] == '299 - "unknown field \\"field0\\""'
        assert len(warnings) == 100


async def test_warning_that_quotes_a_line_break_is_one_header() -> None:
    async with api() as (client, _):
        value = {**config_map("one"), "a\r\nset-cookie: b\x00\x7f\x85": 1}
        answer = await client.post(MAPS, json=value)
        assert answer.status_code == 201
        assert answer.headers.get_list("warning") == ['299 - "unknown field \\"a??set-cookie: b???\\""']


async def test_methods_that_no_resource_has_are_refused_with_the_allowed_ones() -> None:
    async with api() as (client, _):
        answer = await client.options(MAPS)
        assert answer.status_code == 405
        assert answer.headers["allow"] == "GET, HEAD, POST, PUT, PATCH, DELETE"


async def test_path_with_a_line_break_is_not_found() -> None:
    async with api() as (client, _):
        answer = await client.get(f"{MAPS}/one%0Atwo")
        assert (answer.status_code, answer.text) == (404, "Not Found")


async def test_internal_error_is_answered_as_a_status() -> None:
    async with api() as (client, services):
        store = services.views.store
        assert isinstance(store, Store)
        await asyncio.to_thread(store.close)
        answer = await client.get(f"{MAPS}/one")
        assert (answer.status_code, answer.json()["reason"]) == (500, "InternalError")
        assert answer.json()["message"].endswith("internal error; see the server log")


async def test_server_that_observes_another_control_plane_refuses_writes() -> None:
    review = {"spec": {"resourceAttributes": {"verb": "get", "resource": "configmaps"}}}
    async with (
        serving() as services,
        kube_client(dataclasses.replace(services, compared=Report())) as client,
    ):
        before = services.log.last_number()
        refused = [
            await client.post(MAPS, json=config_map("one")),
            await client.patch(f"{MAPS}/one", json={"data": {}}, headers=MERGE),
            await client.delete(f"{MAPS}/one"),
        ]
        assert [answer.status_code for answer in refused] == [403] * 3
        assert "only observes another control plane" in refused[0].json()["message"]
        assert services.log.last_number() == before
        assert (await client.get(MAPS)).status_code == 200
        assert (await client.post(REVIEWS, json=review)).status_code == 201
