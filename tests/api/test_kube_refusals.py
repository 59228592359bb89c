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


async def test_what_is_applied_must_fit_its_kind_too() -> None:
    async with api() as (client, services):
        before = services.log.last_number()
        value = config_map("one") | {"immutable": "yes"}
        headers = {"content-type": "application/apply-patch+yaml"}
        answer = await client.patch(f"{MAPS}/one?fieldManager=me", json=value, headers=headers)
        assert (answer.status_code, answer.json()["reason"]) == (400, "BadRequest")
        assert answer.json()["message"] == (
            "failed to convert new object (default/one; v1, Kind=ConfigMap) to proper version: "
            "json: cannot unmarshal string into Go struct field ConfigMap.immutable of type bool"
        )
        assert services.log.last_number() == before


async def test_base64_in_lines_is_kept_as_it_was_written() -> None:
    async with api() as (client, _):
        text = base64.encodebytes(b"certificate" * 20).decode()
        answer = await client.post(SECRETS, json={"metadata": {"name": "one"}, "data": {"tls.crt": text}})
        assert answer.status_code == 201
        assert answer.json()["data"] == {"tls.crt": text}
