"""Content types and caching of OpenAPI documents. The expected answers are those of a real API server."""

import pytest

from tests.api.kube.client import api

JSON = "application/json"
ASKED = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
PROTOBUF = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
APPS = "/openapi/v3/apis/apps/v1"


@pytest.mark.parametrize(
    ("accept", "content_type"),
    [
        ("", JSON),
        ("*/*", JSON),
        ("application/json;as=Table", JSON),
        (f"*/*, {ASKED}", PROTOBUF),
        (ASKED, PROTOBUF),
        (PROTOBUF, PROTOBUF),
        (f"{JSON};q=0.5, {ASKED};q=0.9", PROTOBUF),
        (f"{JSON}, {ASKED}", JSON),
        ("text/html, */*", JSON),
    ],
)
async def test_version_2_is_json_unless_the_client_prefers_protobuf(accept: str, content_type: str) -> None:
    async with api() as (client, _):
        answer = await client.get("/openapi/v2", headers={"accept": accept})
    assert (answer.status_code, answer.headers["content-type"]) == (200, content_type)
    assert answer.headers["vary"] == "Accept"
    if content_type == JSON:
        assert answer.json()["swagger"] == "2.0"


@pytest.mark.parametrize("path", ["/openapi/v2", APPS])
async def test_unknown_media_types_are_not_acceptable(path: str) -> None:
    async with api() as (client, _):
        answer = await client.get(path, headers={"accept": "application/yaml, text/html"})
    assert (answer.status_code, answer.content) == (406, b"")


@pytest.mark.parametrize("path", ["/openapi/v2", APPS])
async def test_document_that_the_client_has_is_not_sent_again(path: str) -> None:
    async with api() as (client, _):
        etag = (await client.get(path)).headers["etag"]
        for tag in (etag, f"W/{etag}", f'"other", {etag}'):
            answer = await client.get(path, headers={"if-none-match": tag})
            assert (answer.status_code, answer.content, answer.headers["etag"]) == (304, b"", etag)
        assert (await client.get(path, headers={"if-none-match": '"other"'})).status_code == 200


async def test_address_with_the_digest_of_a_document_can_be_cached() -> None:
    async with api() as (client, _):
        address = (await client.get("/openapi/v3")).json()["paths"]["apis/apps/v1"]["serverRelativeURL"]
        answer = await client.get(address)
        assert "immutable" in answer.headers["cache-control"]
        assert answer.headers["etag"].strip('"') == address.partition("hash=")[2]
        outdated = await client.get(APPS, params={"hash": "00"})
        assert (outdated.status_code, outdated.headers["location"]) == (301, address)
        assert (await client.get(APPS)).headers["cache-control"] == "no-cache, private"
