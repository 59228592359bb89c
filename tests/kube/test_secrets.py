"""stringData of Secrets: stored as data, with the same field managers."""

import pytest

from engine.kubeapi.conversion import versions
from events.json_values import Json
from events.kube_objects import KubeObject
from tests.api.kube.client import MERGE, api

SECRETS = "/api/v1/namespaces/default/secrets"
HEAD = KubeObject({"apiVersion": "v1", "kind": "Secret"})


def owned(*names: str) -> Json:
    """Return metadata in which a manager owns a key of each field."""
    fields: Json = {f"f:{name}": {".": {}, "f:a": {}} for name in names}
    entry = {
        "manager": "me",
        "operation": "Update",
        "apiVersion": "v1",
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    }
    return {"name": "pw", "managedFields": [entry]}


def test_string_data_becomes_data_and_takes_precedence() -> None:
    secret = versions.stored_secret(
        HEAD.with_fields({"data": {"a": "eA==", "c": "eQ=="}, "stringData": {"a": "b", "d": "ü"}})
    )
    assert secret == HEAD.with_fields({"data": {"a": "Yg==", "c": "eQ==", "d": "w7w="}})


def test_manager_of_string_data_owns_the_field_of_data() -> None:
    secret = versions.stored_secret(
        HEAD.with_fields({"metadata": owned("stringData"), "stringData": {"a": "b"}})
    )
    assert secret == HEAD.with_fields({"metadata": owned("data"), "data": {"a": "Yg=="}})


@pytest.mark.parametrize("empty", [None, {}])
def test_empty_string_data_is_dropped(empty: object) -> None:
    assert versions.stored_secret(HEAD.with_fields({"stringData": empty})) == HEAD


@pytest.mark.parametrize("wrong", [7, ["a"], {"a": 1}, {"a": None}])
def test_malformed_string_data_is_left_for_validation(wrong: object) -> None:
    value = HEAD.with_fields({"stringData": wrong})
    assert versions.stored_secret(value) == value


@pytest.mark.parametrize(("text", "fields"), [("1", []), ("2", ["data"])])
async def test_string_data_changes_no_immutable_secret(text: str, fields: list[str]) -> None:
    value = {"metadata": {"name": "pw"}, "immutable": True, "stringData": {"a": "1"}}
    async with api() as (client, _):
        assert (await client.post(SECRETS, json=value)).status_code == 201
        answer = await client.patch(f"{SECRETS}/pw", json={"stringData": {"a": text}}, headers=MERGE)
        assert [cause["field"] for cause in answer.json().get("details", {}).get("causes", ())] == fields
        assert (await client.get(f"{SECRETS}/pw")).json()["data"] == {"a": "MQ=="}
