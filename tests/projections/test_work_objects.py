"""Work objects as the Kubernetes API lists them: by namespace and name, in pages, and one by its name."""

import json
from collections.abc import Callable

import msgspec
import pytest

from engine.domain import marks
from engine.http.kube.derived_fields import DerivedFields
from engine.kubeapi.schema import resources
from events import keys, policies, shapes, specs, works
from events.json_values import Json, object_at, objects_at
from events.kube_objects import KubeObject
from events.records import Record
from projections import object_tables
from projections.object_tables import Selection
from projections.port import Rows
from tests.builders.inputs import deployment
from tests.builders.manifests import JOB, manifest, override_policy, raw
from tests.projections.asking import Ask, views_of
from tests.projections.logs import RecordBuilder
from tests.projections.stories import WORK, applied, claimed, declared

WORKS = resources.control_plane().resource("work.karmada.io", "v1alpha1", "works")
APPS = [f"app-{at}" for at in range(11)]
CLUSTERS = ("member2", "member10", "member1")


def labelled(text: str) -> Json:
    """Overriders that replace all labels by one with this value."""
    return {"plaintext": [{"path": "/metadata/labels", "operator": "add", "value": {"by": text}}]}


@pytest.fixture
async def ask() -> Ask:
    """Views of a log with a work of each app in each cluster."""
    builder = RecordBuilder()
    batch: list[Record] = []
    for app in APPS:
        key = keys.binding_key("Deployment", "default", app)
        batch += builder.decide(declared(key, app, 6), *(applied(key, app, cluster) for cluster in CLUSTERS))
    return await views_of(batch)


def listed(rows: Rows, selection: Selection, after: str) -> tuple[list[tuple[str, str]], str]:
    """Return namespace and name of each object of a page, and where the next page begins."""
    page = object_tables.page(rows, selection, limit=4, after=after)
    return [item.key for item in page.items], page.after


def place_of(namespace: str, name: str) -> Callable[[Rows], tuple[str, str] | None]:
    """Return a query of a Work by namespace and name; it returns both as read, None if the Work does not exist."""

    def question(rows: Rows) -> tuple[str, str] | None:
        work = object_tables.get(rows, WORK, namespace, name)
        return None if work is None else work.key

    return question


@pytest.mark.parametrize(
    ("namespace", "clusters"), [("", sorted(CLUSTERS)), ("karmada-es-member1", ["member1"])]
)
async def test_pages_of_works_follow_by_namespace_and_name(
    ask: Ask, namespace: str, clusters: list[str]
) -> None:
    selection = Selection(kind=WORK, namespace=namespace)
    seen: list[tuple[str, str]] = []
    after = ""
    while True:
        page, after = await ask(lambda rows, after=after: listed(rows, selection, after))
        seen += map(tuple, page)
        if not after:
            break

    names = sorted(marks.work_name("Deployment", "default", app) for app in APPS)
    assert seen == [(f"karmada-es-{cluster}", name) for cluster in clusters for name in names]


async def test_work_is_read_by_its_name_in_the_namespace_of_its_cluster(ask: Ask) -> None:
    name = marks.work_name("Deployment", "default", "app-7")

    assert await ask(place_of("karmada-es-member10", name)) == ["karmada-es-member10", name]
    for namespace in ("karmada-es-member3", "default"):
        assert await ask(place_of(namespace, name)) is None
    assert await ask(place_of("karmada-es-member1", "app-7")) is None


async def test_overrides_of_a_work_are_applied_in_its_order_and_listed_by_name() -> None:
    builder = RecordBuilder()
    key = keys.binding_key("Deployment", "default", "web")
    names = ("second", "first")
    overrides = tuple(
        shapes.OverrideRef(
            kind="OverridePolicy", namespace="default", name=name, rules=(0,), offset=0, digest=name
        )
        for name in names
    )
    work = msgspec.structs.replace(applied(key, "web", "member1"), overrides=overrides)
    written = [
        builder.input(
            policies.ConfigurationApplied(
                manifest=raw(override_policy(name, namespace="default", overriders=labelled(name)))
            )
        )
        for name in names
    ]
    ask = await views_of([*written, *builder.decide(declared(key, "web", 6), work)])

    assert WORKS is not None
    (item,) = await ask(lambda rows: object_tables.page(rows, Selection(kind=WORK)).items)
    shown = DerivedFields("token", b"")(WORKS, KubeObject(item))
    listed = json.loads(str(shown.annotations["policy.karmada.io/applied-overrides"]))
    assert [rule["policyName"] for rule in listed] == ["first", "second"]
    (workload,) = objects_at(shown.object_at("spec", "workload"), "manifests")
    assert KubeObject(workload).labels["by"] == "first"


async def test_overrides_of_a_work_are_those_of_the_policy_not_of_a_custom_kind_with_its_name() -> None:
    builder = RecordBuilder()
    key = keys.binding_key("Deployment", "default", "web")
    override = shapes.OverrideRef(
        kind="OverridePolicy", namespace="default", name="slow", rules=(0,), offset=0, digest="d2"
    )
    work = msgspec.structs.replace(applied(key, "web", "member1"), overrides=(override,))
    custom = manifest("example.io/v1", "OverridePolicy", "slow", "default", spec={"overriders": {"own": []}})
    policy = override_policy(
        "slow", namespace="default", overriders={"plaintext": [{"path": "/data", "operator": "remove"}]}
    )
    batch = [
        builder.input(specs.TemplateApplied(manifest=raw(custom))),
        builder.input(policies.ConfigurationApplied(manifest=raw(policy))),
        *builder.decide(declared(key, "web", 6), work),
    ]
    ask = await views_of(batch)

    shown = await ask(lambda rows: object_tables.page(rows, Selection(kind=WORK)).items)
    (applied_rules,) = [
        item["metadata"]["annotations"]["policy.karmada.io/applied-overrides"] for item in shown
    ]
    assert '"plaintext"' in applied_rules


async def test_suspended_work_shows_what_its_cluster_would_get() -> None:
    builder = RecordBuilder()
    app, cluster = APPS[0], CLUSTERS[0]
    key = keys.binding_key("Deployment", "default", app)
    sent = applied(key, app, cluster)
    pending = msgspec.structs.replace(sent, step=2, replicas=3, overwrites=True)
    suspended = works.WorkSuspended(cluster=cluster, key=key, term=1, step=2, pending=pending)
    later = msgspec.structs.replace(suspended, step=3, pending=msgspec.structs.replace(pending, replicas=4))
    batch = [
        builder.input(deployment(app, 3)),
        *builder.decide(declared(key, app, 3), sent),
        *builder.decide(claimed(key), suspended),
    ]

    async def shown() -> tuple[object, object, object]:
        ask = await views_of(batch)
        (work,) = await ask(lambda rows: object_tables.page(rows, Selection(kind=WORK)).items)
        (manifest,) = objects_at(work, "spec", "workload", "manifests")
        return (
            object_at(manifest, "spec")["replicas"],
            KubeObject(work).annotations["work.karmada.io/conflict-resolution"],
            KubeObject(work).metadata["generation"],
        )

    assert await shown() == (3, "overwrite", 2)
    batch += builder.decide(later)
    assert await shown() == (4, "overwrite", 3)


async def test_suspended_work_of_a_former_release_keeps_what_its_cluster_has() -> None:
    builder = RecordBuilder()
    app, cluster = APPS[0], CLUSTERS[0]
    key = keys.binding_key("Deployment", "default", app)
    suspended = works.WorkSuspended(cluster=cluster, key=key, term=1, step=2)
    ask = await views_of(
        [
            builder.input(deployment(app, 3)),
            *builder.decide(declared(key, app, 3), applied(key, app, cluster)),
            *builder.decide(claimed(key), suspended),
        ]
    )

    (work,) = await ask(lambda rows: object_tables.page(rows, Selection(kind=WORK)).items)
    (sent,) = objects_at(work, "spec", "workload", "manifests")
    assert object_at(sent, "spec")["replicas"] == 2
    assert object_at(work, "spec")["suspendDispatching"] is True


async def test_work_of_a_job_leaves_the_deletion_after_its_end_to_the_control_plane() -> None:
    builder = RecordBuilder()
    key = keys.binding_key("Job", "default", "once")
    ref_of_job = shapes.WorkloadRef(api_version="batch/v1", kind="Job", namespace="default", name="once")
    job = manifest(*JOB, "once", "default", spec={"ttlSecondsAfterFinished": 60, "parallelism": 2})
    work = msgspec.structs.replace(applied(key, "once", "member1"), template=ref_of_job)
    ask = await views_of(
        [
            builder.input(specs.TemplateApplied(manifest=raw(job))),
            *builder.decide(msgspec.structs.replace(declared(key, "once", 2), template=ref_of_job), work),
        ]
    )

    (shown,) = await ask(lambda rows: object_tables.page(rows, Selection(kind=WORK)).items)
    (sent,) = objects_at(shown, "spec", "workload", "manifests")
    assert object_at(sent, "spec") == {"parallelism": 2}
