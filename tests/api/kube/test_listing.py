"""Lists and watches: pages, snapshots, selectors, and refusals of invalid queries."""

from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.http.kube import list_responses, rendering
from events.json_values import Json, object_at
from tests.api.kube.client import MAPS, api, create
from tests.builders.manifests import config_map


async def listed(client: httpx.AsyncClient, path: str, **query: str) -> tuple[int, str]:
    answer = await client.get(path, params=query)
    body = answer.json()
    return answer.status_code, str(body.get("message", "")) or " ".join(
        item["metadata"]["name"] for item in body["items"]
    )


async def test_each_page_reports_the_remaining_item_count() -> None:
    async with api() as (client, _):
        for name in "abcde":
            await create(client, config_map(name))
        first = (await client.get(MAPS, params={"limit": "2"})).json()["metadata"]
        second = await client.get(MAPS, params={"limit": "2", "continue": first["continue"]})
        assert (first["remainingItemCount"], second.json()["metadata"]["remainingItemCount"]) == (3, 1)
        last = await client.get(
            MAPS, params={"limit": "2", "continue": second.json()["metadata"]["continue"]}
        )
        assert last.json()["metadata"].keys() == {"resourceVersion"}
        chosen = await client.get(MAPS, params={"limit": "2", "fieldSelector": "metadata.name!=a"})
        assert "remainingItemCount" not in chosen.json()["metadata"]


async def test_labels_can_be_compared_as_numbers() -> None:
    async with api() as (client, _):
        for name, size in (("a", "3"), ("b", "20"), ("c", "many")):
            value = config_map(name)
            await create(client, {**value, "metadata": {"name": name, "labels": {"size": size}}})
        assert await listed(client, MAPS, labelSelector="size>5") == (200, "b")
        assert await listed(client, MAPS, labelSelector="size<5") == (200, "a")


@pytest.mark.parametrize(
    ("query", "code", "why"),
    [
        ({"limit": "x"}, 400, 'strconv.ParseInt: parsing "x": invalid syntax'),
        ({"limit": "9" * 30}, 400, "value out of range"),
        ({"limit": str(2**63)}, 400, "value out of range"),
        ({"resourceVersion": str(2**64)}, 400, "value out of range"),
        ({"resourceVersion": str(2**64 - 1)}, 504, "Too large resource version"),
        ({"resourceVersion": "x"}, 400, 'invalid resource version: resourceVersion: Invalid value: "x"'),
        ({"resourceVersionMatch": "Exact"}, 422, "is forbidden unless resourceVersion is provided"),
        (
            {"resourceVersionMatch": "Exact", "resourceVersion": "0"},
            422,
            'is forbidden for resourceVersion "0"',
        ),
        ({"sendInitialEvents": "true"}, 422, "sendInitialEvents is forbidden for list"),
        (
            {"watch": "1", "sendInitialEvents": "true"},
            422,
            "requires setting resourceVersionMatch to NotOlderThan",
        ),
        ({"watch": "1", "resourceVersionMatch": "NotOlderThan"}, 422, "unless sendInitialEvents is provided"),
        ({"fieldSelector": "data.a=1"}, 400, '"data.a" is not a known field selector'),
    ],
)
async def test_invalid_list_query_is_refused(query: dict[str, str], code: int, why: str) -> None:
    async with api() as (client, _):
        answered, message = await listed(client, MAPS, **query)
        assert answered == code
        assert why in message


@pytest.mark.parametrize("limit", [str(2**63 - 1), "0" * 30 + "1"])
async def test_limit_is_a_number_of_64_bits(limit: str) -> None:
    async with api() as (client, _):
        await create(client, config_map("a"))
        assert await listed(client, MAPS, limit=limit) == (200, "a")


@pytest.mark.parametrize("path", [MAPS, "/api/v1/events"])
async def test_watch_from_a_version_of_64_bits_has_expired(path: str) -> None:
    async with api() as (client, _):
        answer = await client.get(path, params={"watch": "1", "resourceVersion": str(2**64 - 1)})
        assert answer.status_code == 410, answer.text


async def test_replacement_with_a_version_of_64_bits_is_a_conflict() -> None:
    async with api() as (client, _):
        created = await create(client, config_map("a"))
        metadata = {**object_at(created, "metadata"), "resourceVersion": str(2**64 - 1)}
        replaced = await client.put(f"{MAPS}/a", json={**created, "metadata": metadata})
        assert replaced.status_code == 409, replaced.text


async def test_namespaces_cannot_be_deleted_as_a_collection() -> None:
    async with api() as (client, services):
        before = services.log.last_number()
        answer = await client.delete("/api/v1/namespaces")
        assert (answer.status_code, answer.json()["reason"]) == (405, "MethodNotAllowed")
        assert services.log.last_number() == before


async def test_namespaced_objects_of_all_namespaces_cannot_be_deleted_at_once() -> None:
    async with api() as (client, _):
        await create(client, config_map("one"))
        answer = await client.delete("/api/v1/configmaps")
        assert (answer.status_code, answer.json()["reason"]) == (405, "MethodNotAllowed")
        assert (await client.get(f"{MAPS}/one")).status_code == 200


async def test_namespaced_object_needs_a_namespace() -> None:
    async with api() as (client, _):
        answer = await client.post("/api/v1/configmaps", json=config_map("one"))
        assert answer.status_code == 405
        assert await listed(client, "/api/v1/configmaps", fieldSelector="metadata.name=one") == (200, "")


async def test_first_of_repeated_parameters_counts() -> None:
    async with api() as (client, _):
        for name in ("a", "b"):
            await create(client, {**config_map(name), "metadata": {"name": name, "labels": {"of": name}}})
        answer = await client.get(f"{MAPS}?labelSelector=of%3Da&labelSelector=of%3Db")
        assert [item["metadata"]["name"] for item in answer.json()["items"]] == ["a"]
        # If dryRun is repeated, its first value decides.
        assert (await client.delete(f"{MAPS}/a?dryRun=All&dryRun=")).status_code == 200
        assert (await client.get(f"{MAPS}/a")).status_code == 200


async def test_large_list_is_sent_in_pieces() -> None:
    async with api() as (client, _):
        for name in "abc":
            await create(client, {**config_map(name), "data": {"text": name * 900_000}})

        answer = await client.get(MAPS)
        assert "content-length" not in answer.headers
        body = answer.json()
        assert [item["data"]["text"] for item in body["items"]] == [name * 900_000 for name in "abc"]
        first = await client.get(MAPS, params={"limit": "1"})
        assert int(first.headers["content-length"]) == len(first.content)
        assert first.json()["items"] == body["items"][:1]


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-1_000, 1_000)
    | st.sampled_from(['"items":[]', '"rows":[', "x" * 300_000]),
    lambda values: st.lists(values, max_size=3) | st.dictionaries(st.text(max_size=3), values, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize("name", ["items", "rows"])
@given(
    entries=st.lists(st.dictionaries(st.text(max_size=3), JSON_VALUES), max_size=40), text=st.text(max_size=9)
)
def test_pieces_of_a_list_equal_its_encoding(name: str, entries: list[Json], text: str) -> None:
    body: Any = {
        "kind": "List",
        "apiVersion": "v1",
        "columnDefinitions": [text, f'"{name}":['],
        name: entries,
    }
    pieces = [*list_responses.encoded(body)]
    assert b"".join(pieces) == rendering.encode(body)
    assert all(len(piece) >= 1024 * 1024 for piece in pieces[:-1])


async def test_exact_version_is_the_current_one_or_expired() -> None:
    async with api() as (client, _):
        for name in ("a", "b"):
            await create(client, config_map(name))
        number = int((await client.get(MAPS)).json()["metadata"]["resourceVersion"])
        for version, code in ((number, 200), (number - 1, 410), (number + 1, 504)):
            query = {"resourceVersionMatch": "Exact", "resourceVersion": str(version)}
            answer = await client.get(MAPS, params=query)
            assert answer.status_code == code, answer.text
