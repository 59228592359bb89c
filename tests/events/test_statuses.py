"""Verdicts on statuses of other controllers, and on objects that are only stored."""

import msgspec
import pytest

from events import policies, shapes, specs
from tests.builders import inputs, log_records

FOO = shapes.WorkloadRef(api_version="apps/v1", kind="Deployment", name="foo", namespace="default")
GROUP = "policy.karmada.io/v1alpha1"
ROOM = shapes.WorkloadRef(api_version=GROUP, kind="FederatedResourceQuota", name="room", namespace="default")


def status() -> shapes.Object:
    return {"replicas": msgspec.Raw(b"3")}


def test_status_is_a_new_version_and_no_new_generation() -> None:
    partition = log_records.Partition.of(inputs.deployment("foo"))
    made = partition.taken(inputs.deployment("foo")).head
    written = partition.taken(specs.TemplateStatusWritten(template=FOO, status=status(), expects=1)).head
    assert made
    assert written
    assert (written.version, written.generation, written.uid) == (2, 1, made.uid)
    # A write of the object for the version before the status is late, and must be computed again.
    assert partition.refused(inputs.deployment("foo", 4, expects=1)).startswith("late: expects")
    changed = partition.taken(inputs.deployment("foo", 4, expects=2)).head
    assert changed
    assert changed.generation == 2


def test_status_without_its_object_is_refused() -> None:
    written = specs.TemplateStatusWritten(template=FOO, status=status())
    partition = log_records.Partition.of(inputs.deployment("foo"))
    assert partition.refused(written) == "refused: name: default/foo-deployment does not exist"
    partition.taken(inputs.deployment("foo"))
    other = shapes.WorkloadRef(api_version="apps/v2", kind="Deployment", name="foo", namespace="default")
    assert "does not exist" in partition.refused(msgspec.structs.replace(written, template=other))


@pytest.mark.parametrize("text", ["7", "[]", '"well"', "null", "{"])
def test_status_must_be_an_object(text: str) -> None:
    partition = log_records.Partition.of(inputs.deployment("foo"))
    partition.taken(inputs.deployment("foo"))
    record = log_records.record(specs.TemplateStatusWritten(template=FOO, status=status()))
    broken = msgspec.structs.replace(record, value=record.value.replace(b'{"replicas":3}', text.encode()))
    assert log_records.words(partition.take(broken)).startswith("refused: ")


def test_stored_object_is_created_changed_and_deleted() -> None:
    partition = log_records.Partition.of(inputs.quota("room"))
    assert partition.taken(inputs.quota("room")).head
    changed = partition.taken(inputs.quota("room", "9")).head
    assert changed
    assert changed.generation == 2
    partition.taken(policies.ConfigurationStatusWritten(object=ROOM, status=status()))
    partition.taken(policies.ConfigurationDeleted(object=ROOM, expects=3))
    assert "does not exist" in partition.refused(policies.ConfigurationDeleted(object=ROOM))


def test_object_under_the_event_of_another_kind_is_refused() -> None:
    raw = inputs.quota("room").manifest
    partition = log_records.Partition.of(inputs.quota("room"))
    assert partition.refused(policies.PolicyApplied(manifest=raw)).startswith("refused: kind: ")
