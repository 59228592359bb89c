"""Validation of Events of both API versions."""

import pytest

from engine.kubeapi.admission.rules import core
from events.json_values import Json
from events.kube_objects import KubeObject

NEWER: Json = {
    "metadata": {"namespace": "default"},
    "eventTime": "2026-11-25T12:00:00.000000Z",
    "reportingController": "example.com/tester",
    "reportingInstance": "tester-0",
    "action": "Testing",
    "reason": "Tested",
    "type": "Normal",
}


def _fields(value: Json, live: Json | None = None) -> list[str]:
    """Return the fields of the errors of an Event of ``events.k8s.io/v1``."""
    return [
        cause.field for cause in core.event(KubeObject(value), None if live is None else KubeObject(live))
    ]


@pytest.mark.parametrize(
    ("namespace", "of_object", "time", "is_refused"),
    [
        ("shop", "shop", False, False),
        ("shop", "other", False, True),
        ("shop", "", False, True),
        ("default", "", False, False),
        ("kube-system", "", False, True),
        ("shop", "other", True, False),
        ("shop", "", True, True),
        ("default", "", True, False),
        ("kube-system", "", True, False),
    ],
)
def test_namespace_is_that_of_the_object_unless_the_event_has_an_event_time(
    namespace: str, of_object: str, time: bool, is_refused: bool
) -> None:
    event: Json = {**NEWER, "eventTime": NEWER["eventTime"] if time else None}
    metadata: Json = {"namespace": namespace}
    reference: Json = {"namespace": of_object} if of_object else {}
    refused = ["involvedObject.namespace"] if is_refused else []
    value = KubeObject({**event, "metadata": metadata, "involvedObject": reference})
    assert [cause.field for cause in core.core_event(value, None)] == refused
    assert _fields({**event, "metadata": metadata, "regarding": reference}) == [
        *refused,
        *(["eventTime"] if not time else []),
    ]


@pytest.mark.parametrize("field", ["reportingInstance", "action", "reason"])
def test_texts_of_a_new_event_are_required_and_have_at_most_128_characters(field: str) -> None:
    assert _fields({**NEWER, field: "x" * 128}) == []
    assert _fields({**NEWER, field: "x" * 129}) == _fields({**NEWER, field: ""}) == [field]


@pytest.mark.parametrize(
    ("field", "changed"), [("reason", "Other"), ("regarding", {"name": "web"}), ("type", "Warning")]
)
def test_what_an_event_is_about_does_not_change(field: str, changed: object) -> None:
    spelled = "involvedObject" if field == "regarding" else field
    assert _fields({**NEWER, field: changed}, NEWER) == [spelled]
    assert _fields({**NEWER, "note": "another"}, NEWER) == []
