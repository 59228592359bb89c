"""Readers of JSON take other objects for empty values, so the type checker refuses these.

Each ignored report below is an error of the type checker if the report is gone.
"""

# pyright: reportUnnecessaryTypeIgnoreComment=true

from msgspec import Struct

from events.json_values import as_object, at, list_at, object_at, objects_at
from events.kube_objects import KubeObject


class _Spec(Struct):
    replicas: int = 1


def test_object_passed_as_json_is_a_type_error() -> None:
    value = KubeObject({"spec": {"replicas": 1}})
    assert at(value, "spec") is None  # pyright: ignore[reportDeprecated]
    assert object_at(value, "spec") == {}  # pyright: ignore[reportDeprecated]
    assert list_at(value, "spec") == []  # pyright: ignore[reportDeprecated]
    assert objects_at(value, "spec") == []  # pyright: ignore[reportDeprecated]
    assert as_object(value) is None  # pyright: ignore[reportDeprecated]


def test_object_that_may_be_absent_is_a_type_error_too() -> None:
    values = {"a": KubeObject({"spec": {}})}
    assert at(values.get("a"), "spec") is None  # pyright: ignore[reportDeprecated]


def test_struct_passed_as_json_is_a_type_error() -> None:
    assert at(_Spec(), "replicas") is None  # pyright: ignore[reportDeprecated]
