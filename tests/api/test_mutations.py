"""Mutations as values: what is stored and what is asked for give the object, the events and the warnings."""

import pytest
from msgspec import Struct

from engine.kubeapi.errors.status_objects import StatusError
from engine.kubeapi.schema.resources import control_plane
from engine.objects.owner_references import Propagation
from engine.writing.mutations import Action, Edited, Mutated, Problem, Target, Verdict
from engine.writing.object_changes import Change, Preconditions, Removal, StatusChange, encode
from events import specs, times
from events.json_values import Json
from events.kube_objects import KubeObject
from events.validation.verdicts import Head
from projections.objects import StoredObject
from tests.builders.manifests import deployment

NOW_MS = times.from_text("2026-01-01T00:00:00Z")
WEB = Target(api_version="apps/v1", kind="Deployment", namespace="default", name="web")


class Set(Struct, frozen=True):
    """Sets fields of the object, or makes the object."""

    fields: Json

    def apply(self, live: KubeObject | None) -> Edited:
        return Edited((live or KubeObject(deployment("web", 1))).with_fields(self.fields), ("a warning",))


def stored(value: Json) -> StoredObject:
    head = Head(7, 2, "an-uid", NOW_MS, "a-digest", WEB.api_version, WEB.kind, WEB.name)
    return StoredObject(number=31, head=head, manifest=encode(value))


def finalized(*finalizers: str) -> StoredObject:
    value = deployment("web", 1)
    value["metadata"] = {"name": "web", "namespace": "default", "finalizers": list(finalizers)}
    return stored(value)


def test_change_of_nothing_creates() -> None:
    mutated = Change(target=WEB, edit=Set({})).apply(None)
    assert isinstance(mutated, Mutated)
    assert (mutated.action, mutated.warnings) == (Action.CREATED, ("a warning",))
    assert mutated.value.at("metadata", "generation") == 1
    (event,) = mutated.events
    assert isinstance(event, specs.TemplateApplied)
    assert event.expects == 0


def test_change_names_the_version_that_it_was_computed_from() -> None:
    mutated = Change(target=WEB, edit=Set({"spec": {"replicas": 2}})).apply(stored(deployment("web", 1)))
    assert isinstance(mutated, Mutated)
    (event,) = mutated.events
    assert isinstance(event, specs.TemplateApplied)
    assert (mutated.action, event.expects) == (Action.CONFIGURED, 7)


def test_repeated_mutation_gives_the_same_events() -> None:
    change, current = Change(target=WEB, edit=Set({"spec": {"replicas": 2}})), stored(deployment("web", 1))
    assert change.apply(current) == change.apply(current)


def test_change_that_changes_nothing_has_no_event() -> None:
    current = stored(deployment("web", 1))
    mutated = Change(target=WEB, edit=Set({})).apply(current)
    assert isinstance(mutated, Mutated)
    assert (mutated.action, mutated.events) == (Action.UNCHANGED, ())


def test_object_with_finalizers_is_marked_and_without_is_deleted() -> None:
    removal = Removal(target=WEB, now_ms=NOW_MS)
    marked, deleted = removal.apply(finalized("a.example/b")), removal.apply(finalized())
    assert isinstance(marked, Mutated)
    assert isinstance(deleted, Mutated)
    assert marked.action == Action.MARKED
    assert marked.value.at("metadata", "deletionTimestamp") == "2026-01-01T00:00:00Z"
    assert deleted.action == Action.DELETED
    assert deleted.events == (specs.TemplateDeleted(template=WEB.reference, expects=7),)


def test_orphaning_removal_leaves_the_workloads_in_the_clusters() -> None:
    mutated = Removal(target=WEB, now_ms=NOW_MS, propagation=Propagation.ORPHAN).apply(finalized())
    assert isinstance(mutated, Mutated)
    assert mutated.events == (specs.TemplateDeleted(template=WEB.reference, expects=7, orphans=True),)


def test_orphaning_removal_of_an_object_with_dependents_marks_it() -> None:
    removal = Removal(target=WEB, now_ms=NOW_MS, propagation=Propagation.ORPHAN, has_dependents=True)
    marked = removal.apply(finalized())
    assert isinstance(marked, Mutated)
    assert (marked.action, marked.value.at("metadata", "finalizers")) == (Action.MARKED, ["orphan"])


def test_orphaning_removal_is_remembered_until_the_garbage_collector_deletes_the_object() -> None:
    marked = Removal(target=WEB, now_ms=NOW_MS, propagation=Propagation.ORPHAN).apply(
        finalized("a.example/b")
    )
    assert isinstance(marked, Mutated)
    assert marked.value.at("metadata", "finalizers") == ["a.example/b", "orphan"]
    rest = Set({"metadata": {**marked.value.metadata, "finalizers": ["orphan"]}})
    released = Change(target=WEB, edit=rest).apply(stored(marked.value.document))
    assert isinstance(released, Mutated)
    assert released.action == Action.CONFIGURED
    deleted = Removal(target=WEB, now_ms=NOW_MS).apply(stored(released.value.document))
    assert isinstance(deleted, Mutated)
    assert deleted.events == (specs.TemplateDeleted(template=WEB.reference, expects=7, orphans=True),)


def test_removal_of_another_object_than_required_is_refused() -> None:
    resource = control_plane().of_kind("apps/v1", "Deployment")
    assert resource is not None
    removal = Removal(target=WEB, now_ms=NOW_MS, preconditions=Preconditions(resource=resource, uid="other"))
    words = r'on Deployment\.apps "web": the UID in the precondition \(other\) does not match'
    with pytest.raises(StatusError, match=words):
        removal.apply(stored(deployment("web", 1)))


@pytest.mark.parametrize(
    "mutation", [Removal(target=WEB, now_ms=NOW_MS), StatusChange(target=WEB, edit=Set({}))]
)
def test_object_of_another_group_under_the_same_key_is_not_found(mutation: Removal | StatusChange) -> None:
    head = Head(7, 2, "an-uid", NOW_MS, "a-digest", "other.example/v1", WEB.kind, WEB.name)
    other = StoredObject(number=31, head=head, manifest=b"{}")
    problem = mutation.apply(other)
    assert isinstance(problem, Problem)
    assert problem.verdict == Verdict.NOT_FOUND
