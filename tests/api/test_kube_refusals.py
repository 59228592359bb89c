"""What is refused before anything is decided about it, by which code and in which words; no event comes of it."""

import base64

import pytest

from tests.api.test_kube import MAPS, Json, api, config_map, made

SECRETS = "/api/v1/namespaces/default/secrets"
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
async def test_what_its_kind_can_not_hold_is_not_stored(path: str, value: Json, why: str) -> None:
    async with api() as (client, services):
        before = services.log.last_number()
        answer = await client.post(path, json={"metadata": {"name": "one"}, **value})
        assert (answer.status_code, answer.json()["reason"]) == (400, "BadRequest")
        assert answer.json()["message"].endswith(why)
        assert services.log.last_number() == before


async def test_a_patch_that_makes_such_a_value_is_at_fault() -> None:
    async with api() as (client, services):
        await made(client, config_map("one", a="1"))
        before = services.log.last_number()
        answer = await client.patch(f"{MAPS}/one", json={"immutable": "yes"}, headers=MERGE)
        told = answer.json()
        assert (answer.status_code, told["reason"]) == (422, "Invalid")
        assert told["details"]["causes"][0]["field"] == "patch"
        assert "Go struct field ConfigMap.immutable of type bool" in told["message"]
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
async def test_what_is_applied_must_fit_its_kind_too(fields: Json, why: str) -> None:
    async with api() as (client, services):
        before = services.log.last_number()
        headers = {"content-type": "application/apply-patch+yaml"}
        value = config_map("one") | fields
        answer = await client.patch(f"{MAPS}/one?fieldManager=me", json=value, headers=headers)
        assert (answer.status_code, answer.json()["reason"]) == (400, "BadRequest")
        assert answer.json()["message"].endswith(why)
        assert services.log.last_number() == before


async def test_base64_in_lines_is_kept_as_it_was_written() -> None:
    async with api() as (client, _):
        text = base64.encodebytes(b"certificate" * 20).decode()
        answer = await client.post(SECRETS, json={"metadata": {"name": "one"}, "data": {"tls.crt": text}})
        assert answer.status_code == 201
        assert answer.json()["data"] == {"tls.crt": text}


@pytest.mark.parametrize(
    ("metadata", "code", "why"),
    [
        ({"name": "one", "resourceVersion": "99999999"}, 409, "the object has been modified"),
        ({"name": ""}, 400, "name must be provided"),
        ({}, 400, "name must be provided"),
    ],
)
async def test_a_write_of_no_version_that_there_was_or_of_no_name(
    metadata: Json, code: int, why: str
) -> None:
    async with api() as (client, services):
        await made(client, config_map("one", a="1"))
        before = services.log.last_number()
        answer = await client.put(f"{MAPS}/one", json={**config_map("one", a="2"), "metadata": metadata})
        assert answer.status_code == code
        assert why in answer.json()["message"]
        assert services.log.last_number() == before


async def test_what_is_applied_has_the_fields_of_its_kind_however_it_is_validated() -> None:
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


async def test_who_owns_what_is_followed_from_the_first_apply_on_where_nobody_owned_anything() -> None:
    async with api() as (client, _):
        await made(client, config_map("one"))
        changed = await client.patch(f"{MAPS}/one", json={"data": {"a": "1"}}, headers=MERGE)
        assert "managedFields" not in changed.json()["metadata"]
        applied = await client.patch(
            f"{MAPS}/one?fieldManager=me",
            json=config_map("one", a="2"),
            headers={"content-type": "application/apply-patch+yaml"},
        )
        assert applied.status_code == 409
        assert 'conflict with "before-first-apply" using v1: .data.a' in applied.json()["message"]


async def test_many_warnings_are_cut_as_kubernetes_cuts_them() -> None:
    async with api() as (client, _):
        await made(client, config_map("one", a="1"))
        unknown = {f"field{index}": 1 for index in range(30_000)}
        answer = await client.patch(f"{MAPS}/one", json=unknown, headers=MERGE)
        assert answer.status_code == 200
        warnings = answer.headers.get_list("warning")
        assert warnings[0] == '299 - "unknown field \\"field0\\""'
        assert 100 < len(warnings) < 300
