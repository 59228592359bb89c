"""Objects that are created, changed and deleted: generations, expected versions, names."""

from collections.abc import Callable

import pytest

from events import policies, shapes, specs
from tests.builders import inputs, log_records
from tests.builders.inputs import policy
from tests.builders.log_records import Partition, envelope
from tests.builders.manifests import manifest, raw
from tests.events.verdicts.deployment import FOO, FOO_MANIFEST, KEY, applied, head_of

NAMESPACE = policies.NamespaceApplied(manifest=raw(manifest("v1", "Namespace", "shop")))


def test_first_write_creates() -> None:
    partition = Partition.of(applied())
    taken = partition.taken(applied(), envelope(time="2024-05-25T09:49:51.120Z"))

    assert taken.at_ms == 1_716_630_591_120
    assert taken.manifest is not None
    assert taken.manifest.reference == FOO
    head = taken.head
    assert head is not None
    assert head == head_of(partition)
    assert (head.version, head.generation, head.created_ms) == (1, 1, 1_716_630_591_120)
    assert (head.api_version, head.kind, head.name) == ("apps/v1", "Deployment", "foo")


def test_generation_ignores_metadata_and_status() -> None:
    partition = Partition.of(applied())
    first = partition.taken(inputs.applied(FOO_MANIFEST), envelope(time="2024-05-25T09:49:51Z")).head
    assert first is not None
    generations: list[int] = []
    for extra in ({}, {"status": {"replicas": 3}}, {"other": 1}):
        changed = inputs.applied(FOO_MANIFEST | extra)
        taken = partition.taken(changed, envelope(time="2025-01-01T00:00:00Z"))
        assert taken.head is not None
        assert (taken.head.uid, taken.head.created_ms) == (first.uid, first.created_ms)
        generations.append(taken.head.generation)
    assert generations == [1, 1, 2]
    assert head_of(partition).version == 4


def test_write_with_the_current_version_is_taken() -> None:
    partition = Partition.of(applied())
    partition.taken(applied(expects=0))
    partition.taken(applied(4, expects=1))
    partition.taken(applied(5))  # without an expected version, the last write wins
    assert (
        partition.refused(applied(expects=0)) == "late: expects: written for version 0, but version 3 stands"
    )
    assert (
        partition.refused(applied(expects=2)) == "late: expects: written for version 2, but version 3 stands"
    )
    assert head_of(partition).generation == 3


def test_expected_version_of_a_missing_object_is_late() -> None:
    partition = Partition.of(applied())
    assert partition.refused(applied(expects=7)) == "late: expects: written for version 7, but there is none"


def test_deleted_object_is_removed_and_can_be_created_again() -> None:
    partition = Partition.of(applied())
    old = partition.taken(applied()).head
    deletion = partition.taken(specs.TemplateDeleted(template=FOO, expects=1))
    assert deletion.head == old
    assert not partition.fold.state.heads
    refusal = partition.refused(specs.TemplateDeleted(template=FOO))
    assert refusal == "refused: name: default/foo-deployment does not exist"
    new = partition.taken(applied(expects=0)).head
    assert old is not None
    assert new is not None
    assert new.uid != old.uid
    assert (new.generation, new.version) == (1, 4)


POLICY_REF = shapes.PolicyRef(kind="PropagationPolicy", name="p", namespace="default")


@pytest.mark.parametrize(
    ("written", "deleted"),
    [
        (applied, lambda: specs.TemplateDeleted(template=FOO)),
        (lambda: policy("p"), lambda: policies.PolicyDeleted(policy=POLICY_REF)),
        (
            lambda: NAMESPACE,
            lambda: policies.NamespaceDeleted(name="shop"),
        ),
    ],
    ids=["template", "policy", "namespace"],
)
def test_each_kind_of_object_can_be_deleted(written: log_records.Build, deleted: log_records.Build) -> None:
    partition = Partition.of(written())
    partition.taken(written())
    partition.taken(deleted())
    assert not partition.fold.state.heads


OTHERS = (
    shapes.WorkloadRef(api_version="example.io/v1", kind="Deployment", name="foo", namespace="default"),
    shapes.WorkloadRef(api_version="apps/v1", kind="deployment", name="foo", namespace="default"),
    shapes.WorkloadRef(api_version="apps/v1", kind="Deployment", name="default/foo"),
)
"""Identities with the key of the Deployment foo."""

EVENTS: list[Callable[[shapes.WorkloadRef], shapes.Event]] = [
    lambda ref: specs.TemplateDeleted(template=ref),
    lambda ref: specs.TemplateStatusWritten(template=ref, status={}),
    lambda ref: specs.DeletionAllowed(template=ref, cluster="member1"),
    lambda ref: specs.SuspensionWritten(template=ref, scheduling=True),
]


@pytest.mark.parametrize("other", OTHERS, ids=["version", "kind", "name"])
@pytest.mark.parametrize("event_of", EVENTS, ids=["deletion", "status", "permission", "suspension"])
def test_event_must_name_the_existing_object(
    event_of: Callable[[shapes.WorkloadRef], shapes.Event], other: shapes.WorkloadRef
) -> None:
    missing = "refused: name: default/foo-deployment does not exist"
    assert log_records.key_of(event_of(other)) == KEY
    partition = Partition.of(applied())
    assert partition.refused(event_of(FOO)) == missing
    partition.taken(applied())
    assert partition.refused(event_of(other)) == missing
    assert KEY in partition.fold.state.heads
    partition.taken(event_of(FOO))


def test_deletion_is_allowed_in_a_cluster_only() -> None:
    partition = Partition.of(applied())
    partition.taken(applied())
    refusal = partition.refused(specs.DeletionAllowed(template=FOO, cluster="Not a name"))
    assert refusal == "refused: cluster: 'Not a name' is no name of a cluster"


def test_policy_is_deleted_by_its_own_kind() -> None:
    partition = Partition("policies")
    partition.taken(policy("p"))
    partition.taken(NAMESPACE)
    for ref in (
        shapes.PolicyRef(kind="propagationpolicy", name="p", namespace="default"),
        shapes.PolicyRef(kind="PropagationPolicy", name="default/p"),
        shapes.PolicyRef(kind="Namespace", name="shop"),
    ):
        refusal = partition.refused(policies.PolicyDeleted(policy=ref))
        assert refusal.startswith("refused: name: "), refusal
    assert len(partition.fold.state.heads) == 2


def test_two_templates_with_one_binding_name_are_refused() -> None:
    partition = Partition.of(applied())
    partition.taken(applied())
    other = inputs.applied(manifest("example.io/v1", "Deployment", "foo", "default"))
    refusal = "refused: apiVersion: apps/v1 Deployment foo has this binding name; delete that one first"
    assert partition.refused(other) == refusal
    assert head_of(partition).version == 1

    role = "rbac.authorization.k8s.io/v1"
    first, second = (
        inputs.applied(manifest(role, "ClusterRole", name)) for name in ("system:view", "system.view")
    )
    partition = Partition.of(first)
    partition.taken(first)
    refusal = (
        f"refused: metadata.name: {role} ClusterRole system:view has this binding name; delete that one first"
    )
    assert partition.refused(second) == refusal
