"""Verdicts on statuses of other controllers, and on objects that are only stored."""

import msgspec
import pytest

from events import policies, shapes, specs
from tests.events import builders

FOO = shapes.WorkloadRef(api_version="apps/v1", kind="Deployment", name="foo", namespace="default")
GROUP = "policy.karmada.io/v1alpha1"
ROOM = shapes.WorkloadRef(api_version=GROUP, kind="FederatedResourceQuota", name="room", namespace="default")


def status() -> shapes.Object:
    return {"replicas": msgspec.Raw(b"3")}


def quota(cpu: str = "8") -> policies.ConfigurationApplied:
    spec = {"overall": {"cpu": cpu}}
    raw = builders.manifest(GROUP, "FederatedResourceQuota", "room", "default", spec=spec)
    return policies.ConfigurationApplied(manifest=raw)


def test_status_is_a_new_version_and_no_new_generation() -> None:
    partition = builders.Partition.of(builders.applied())
    made = partition.taken(builders.applied()).head
    written = partition.taken(specs.TemplateStatusWritten(template=FOO, status=status(), expects=1)).head
    assert made
    assert written
    assert (written.version, written.generation, written.uid) == (2, 1, made.uid)
    # A write of the object for the version before the status is late, and must be computed again.
    assert partition.refused(builders.applied(replicas=4, expects=1)).startswith("late: expects")
    changed = partition.taken(builders.applied(replicas=4, expects=2)).head
    assert changed
    assert changed.generation == 2


def test_status_without_its_object_is_refused() -> None:
    written = specs.TemplateStatusWritten(template=FOO, status=status())
    partition = builders.Partition.of(builders.applied())
    assert partition.refused(written) == "refused: name: default/foo-deployment does not exist"
    partition.taken(builders.applied())
    other = shapes.WorkloadRef(api_version="apps/v2", kind="Deployment", name="foo", namespace="default")
    assert "does not exist" in partition.refused(msgspec.structs.replace(written, template=other))


@pytest.mark.parametrize("text", ["7", "[]", '"well"', "null", "{"])
def test_status_must_be_an_object(text: str) -> None:
    partition = builders.Partition.of(builders.applied())
    partition.taken(builders.applied())
    record = builders.record(specs.TemplateStatusWritten(template=FOO, status=status()))
    broken = msgspec.structs.replace(record, value=record.value.replace(b'{"replicas":3}', text.encode()))
    assert builders.words(partition.take(broken)).startswith("refused: ")


def test_stored_object_is_created_changed_and_deleted() -> None:
    partition = builders.Partition.of(quota())
    assert partition.taken(quota()).head
    changed = partition.taken(quota("9")).head
    assert changed
    assert changed.generation == 2
    partition.taken(policies.ConfigurationStatusWritten(object=ROOM, status=status()))
    partition.taken(policies.ConfigurationDeleted(object=ROOM, expects=3))
    assert "does not exist" in partition.refused(policies.ConfigurationDeleted(object=ROOM))


def test_object_under_the_event_of_another_kind_is_refused() -> None:
    raw = quota().manifest
    partition = builders.Partition.of(quota())
    assert partition.refused(policies.PolicyApplied(manifest=raw)).startswith("refused: kind: ")
