"""The table of changes: in log order, and compact on disk."""

from pathlib import Path
from typing import Final

import msgspec
import pytest

from engine.domain import marks
from events import decisions, keys, policies, quota_decisions, records, shapes
from events.kube_objects import KubeObject
from projections import changes, object_tables, store
from tests.builders.inputs import capacity, configuration, health_reported, joined, key, quota, ref
from tests.builders.manifests import CONFIG_MAP, POLICIES, manifest, raw
from tests.projections.logs import RecordBuilder, fold_all
from tests.projections.stories import decided, owner

ROWS: Final = 2_000
LAST: Final = KubeObject({"spec": "x" * 1_100})
"""A document as large as that of a usual Work."""


def test_documents_of_deleted_objects_fill_their_pages(tmp_path: Path) -> None:
    views = store.Store(tmp_path / store.FILE)
    recorder = changes.Changes()
    for start in range(0, ROWS, 100):
        with views.writing() as rows:
            for number in range(start, start + 100):
                recorder.remove(number, changes.WORK, number % 300, LAST)
                recorder.note(number)
            recorder.flush(rows)
    views.close()
    assert (tmp_path / store.FILE).stat().st_size < ROWS * 1_500


def test_changes_of_one_record_are_ordered_by_kind() -> None:
    views = store.Store()
    recorder = changes.Changes()
    with views.writing() as rows:
        recorder.touch(7, changes.WORK, 2, member=9)
        recorder.touch(7, changes.RESOURCE_BINDING, 2)
        recorder.touch(7, changes.WORK, 2, member=8, added=True)
        recorder.touch(8, changes.WORK, 1)
        recorder.flush(rows)
    with views.reading() as rows:
        recorded = changes.between(rows, 6, 7)
        later = changes.between(rows, 7, 8, changes.WORK)
    assert [(change.number, change.kind, change.member, change.verb) for change in recorded] == [
        (7, changes.RESOURCE_BINDING, 0, changes.MODIFIED),
        (7, changes.WORK, 8, changes.ADDED),
        (7, changes.WORK, 9, changes.MODIFIED),
    ]
    assert [(change.number, change.key_id) for change in later] == [(8, 1)]


def test_changes_of_a_range_that_is_kept_in_part_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "CHANGES_MAX", 2)
    views, builder = store.Store(), RecordBuilder()
    fold_all(views, [builder.input(joined(name)) for name in ("a", "b", "c", "d")])
    with views.reading() as rows:
        end = changes.checkpoint(rows)
        assert [change.number for change in changes.between(rows, end - 2, end)] == [end - 1, end]
        with pytest.raises(changes.DroppedError):
            changes.between(rows, end - 3, end)


def test_heartbeat_changes_nothing_that_watches_report() -> None:
    views, builder = store.Store(), RecordBuilder()
    reports = [health_reported("member1", grace_s=40), health_reported("member1", grace_s=40)]
    fold_all(
        views,
        [builder.input(event) for event in (joined("member1"), *reports, capacity("member1"), *reports)],
    )
    with views.reading() as rows:
        recorded = changes.between(rows, 0, 6)
    assert [(change.number, change.verb) for change in recorded] == [
        (1, changes.ADDED),
        (2, changes.MODIFIED),
        (4, changes.MODIFIED),
    ]


SETTINGS: Final = key("config", CONFIG_MAP)
SHARD: Final = keys.shard_of(SETTINGS)
WORKLOAD: Final = next(name for name in map("web-{}".format, range(99)) if keys.shard_of(key(name)) == SHARD)


def declared(name: str, kind: tuple[str, str] = ("apps/v1", "Deployment")) -> decisions.BindingDeclared:
    return decisions.BindingDeclared(
        key=key(name, kind),
        template=ref(name, kind),
        uid=name,
        generation=1,
        offset=0,
        digest="d",
        replicas=1,
    )


def needing(builder: RecordBuilder) -> list[records.Record]:
    """A workload, and a ConfigMap that it needs."""
    need = decisions.RequiredBy(namespace="default", name=keys.split(key(WORKLOAD))[1], clusters=("member1",))
    required = decisions.BindingRequired(key=SETTINGS, required_by=(need,))
    return builder.step(SHARD, [declared(WORKLOAD), declared("config", CONFIG_MAP), required])


def test_last_document_of_a_binding_has_the_labels_of_its_dependents() -> None:
    views, builder = store.Store(), RecordBuilder()
    story = needing(builder)
    fold_all(views, story)
    kind = object_tables.Kind("work.karmada.io/v1alpha2", "ResourceBinding")
    with views.reading() as rows:
        listed = object_tables.get(rows, kind, *keys.split(SETTINGS))
    withdrawn = decisions.BindingWithdrawn(key=SETTINGS, reason="TemplateDeleted")
    views = store.Store()
    fold_all(views, [*story, *builder.step(SHARD, [withdrawn])])
    with views.reading() as rows:
        last = changes.between(rows, len(story), len(story) + 2)[-1]
    assert listed is not None
    assert last.body is not None
    removed = KubeObject(msgspec.json.decode(last.body))
    assert marks.depended_by(key(WORKLOAD)) in listed.labels
    assert removed.labels == listed.labels


def test_binding_that_is_needed_again_before_its_shard_decides_shows_the_change() -> None:
    """Its shard takes both links in one intake and finds the same terms, so no decision about it follows."""
    views, builder = store.Store(), RecordBuilder()

    def distributed(*dependencies: shapes.WorkloadRef) -> decisions.DependenciesDistributed:
        return decisions.DependenciesDistributed(
            key=key(WORKLOAD), dependencies=dependencies, clusters=("member1",) if dependencies else ()
        )

    settings = ref("config", CONFIG_MAP)
    story = [
        *needing(builder),
        *builder.step(SHARD, [decided(key(WORKLOAD), member1=1), distributed(settings)]),
        *builder.step(SHARD, [decided(key(WORKLOAD)), distributed()]),
    ]
    again = builder.step(SHARD, [decided(key(WORKLOAD), member1=2), distributed(settings)])
    fold_all(views, [*story, *again])
    with views.reading() as rows:
        recorded = changes.between(rows, len(story), len(story) + len(again), changes.RESOURCE_BINDING)
        listed = object_tables.get(
            rows, object_tables.Kind("work.karmada.io/v1alpha2", "ResourceBinding"), *keys.split(SETTINGS)
        )
    assert listed is not None
    assert listed.resource_version == str(len(story) + len(again))
    assert len({change.key_id for change in recorded}) == 2


def test_status_has_no_use_of_limits_that_were_removed() -> None:
    views, builder = store.Store(), RecordBuilder()
    spec = {"staticAssignments": [{"clusterName": "member1", "hard": {"cpu": "4"}}]}
    unlimited = configuration(manifest(POLICIES, "FederatedResourceQuota", "few", "default", spec=spec))
    decided = quota_decisions.QuotaDecided(namespace="default", used={"few": {"cpu": "3"}})
    fold_all(views, [builder.input(quota("few")), *builder.step(0, [decided]), builder.input(unlimited)])
    kind = object_tables.Kind(POLICIES, "FederatedResourceQuota")
    with views.reading() as rows:
        quota_object = object_tables.get(rows, kind, "default", "few")
    assert quota_object is not None
    assert quota_object.object_at("status") == {}


@pytest.mark.parametrize("is_written_last", [False, True])
def test_status_has_the_fields_of_a_client_beside_those_of_the_engine(*, is_written_last: bool) -> None:
    views, builder = store.Store(), RecordBuilder()
    few = shapes.WorkloadRef(
        api_version=POLICIES, kind="FederatedResourceQuota", name="few", namespace="default"
    )
    written = policies.ConfigurationStatusWritten(
        object=few, status={"note": raw("ours"), "claimed": raw({"cpu": "9"})}, managed_fields=(owner(7),)
    )
    decided = quota_decisions.QuotaDecided(namespace="default", used={"few": {"cpu": "3"}})
    status_written, step = [builder.input(written)], builder.step(0, [decided])
    later = [*step, *status_written] if is_written_last else [*status_written, *step]
    fold_all(views, [builder.input(quota("few")), *later])
    with views.reading() as rows:
        quota_object = object_tables.get(rows, object_tables.Kind(POLICIES, few.kind), "default", "few")
    assert quota_object is not None
    status = quota_object.object_at("status")
    assert (status["note"], status["overallUsed"]) == ("ours", {"cpu": "3"})
    assert [field["manager"] for field in quota_object.objects_at("metadata", "managedFields")] == [
        "controller-7"
    ]
