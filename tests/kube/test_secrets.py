"""Texts of Secrets: kept as data, under the same owners."""

import pytest

from engine.kubeapi.conversion import secrets
from engine.kubeapi.schema.schemas import Json

HEAD: Json = {"apiVersion": "v1", "kind": "Secret"}


def owned(*names: str) -> Json:
    """Metadata in which somebody owns these keys of a field each."""
    fields: Json = {f"f:{name}": {".": {}, "f:a": {}} for name in names}
    entry = {
        "manager": "me",
        "operation": "Update",
        "apiVersion": "v1",
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    }
    return {"name": "pw", "managedFields": [entry]}


def test_texts_become_data_and_count_more_than_what_stood_there() -> None:
    found = secrets.kept({**HEAD, "data": {"a": "eA==", "c": "eQ=="}, "stringData": {"a": "b", "d": "ü"}})
    assert found == {**HEAD, "data": {"a": "Yg==", "c": "eQ==", "d": "w7w="}}


def test_who_wrote_a_text_owns_its_field_of_data() -> None:
    found = secrets.kept({**HEAD, "metadata": owned("stringData"), "stringData": {"a": "b"}})
    assert found == {**HEAD, "metadata": owned("data"), "data": {"a": "Yg=="}}


@pytest.mark.parametrize("empty", [None, {}])
def test_empty_texts_leave_nothing(empty: object) -> None:
    assert secrets.kept({**HEAD, "stringData": empty}) == HEAD


@pytest.mark.parametrize("wrong", [7, ["a"], {"a": 1}, {"a": None}])
def test_what_is_no_text_stays_for_whoever_judges_it(wrong: object) -> None:
    value: Json = {**HEAD, "stringData": wrong}
    assert secrets.kept(value) == value
