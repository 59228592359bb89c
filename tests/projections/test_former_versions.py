"""Works of changed templates and override policies: each shows the versions that were sent to its cluster."""

import asyncio
import json
from typing import Any, cast

import pytest
from msgspec import structs

from engine.log.local import MemoryLog
from events import keys, kube_objects, policies, shapes, specs, works
from events.records import Record
from events.validation import manifests
from projections import changes, object_tables
from projections.object_tables import Kind, Selection
from projections.port import Rows
from projections.runner import Projector
from projections.store import Store
from tests.builders.inputs import deployment, ref
from tests.builders.manifests import POLICIES, override_policy, raw
from tests.projections.asking import views_of
from tests.projections.logs import RecordBuilder
from tests.projections.stories import declared

WORK = Kind("work.karmada.io/v1alpha1", "Work")
KEY = keys.binding_key("Deployment", "default", "web")
OLD, NEW, NEWEST = (deployment("web", 4, cpu=cpu) for cpu in ("1", "2", "3"))


def sent(template: specs.TemplateApplied, cluster: str, step: int = 1) -> works.WorkApplied:
    return works.WorkApplied(
        cluster=cluster,
        key=KEY,
        template=ref("web"),
        shard=keys.shard_of(KEY),
        offset=0,
        digest=kube_objects.manifest_digest(template.manifest),
        term=1,
        step=step,
        replicas=2,
    )


def suspended(cluster: str) -> works.WorkSuspended:
    return works.WorkSuspended(cluster=cluster, key=KEY, term=1, step=2)


def removed(cluster: str) -> works.WorkRemoved:
    return works.WorkRemoved(cluster=cluster, key=KEY, term=1, step=3)


@pytest.fixture
def builder() -> RecordBuilder:
    return RecordBuilder()


@pytest.fixture
def opening(builder: RecordBuilder) -> list[Record]:
    """A template that was sent to two clusters."""
    outputs = (declared(KEY, "web", 4), sent(OLD, "member1"), sent(OLD, "member2"))
    return [builder.input(OLD), *builder.decide(*outputs)]


def shown(rows: Rows) -> dict[str, str]:
    """Return the CPU request in the manifest of each Work, by namespace."""
    amounts: dict[str, str] = {}
    for work in object_tables.page(rows, Selection(kind=WORK)).items:
        (manifest,) = cast("Any", work.document)["spec"]["workload"]["manifests"]
        container = manifest["spec"]["template"]["spec"]["containers"][0]
        amounts[work.namespace] = container["resources"]["requests"]["cpu"]
        assert manifest["spec"]["replicas"] == 2
    return amounts


async def test_work_shows_the_version_that_was_sent_to_its_cluster(
    builder: RecordBuilder, opening: list[Record]
) -> None:
    changed = [*opening, builder.input(NEW)]
    ask = await views_of(changed)
    assert await ask(shown) == {"karmada-es-member1": "1", "karmada-es-member2": "1"}

    changed += builder.decide(sent(NEW, "member1", step=2))
    ask = await views_of(changed)
    assert await ask(shown) == {"karmada-es-member1": "2", "karmada-es-member2": "1"}

    ask = await views_of([*changed, builder.input(NEWEST)])
    assert await ask(shown) == {"karmada-es-member1": "2", "karmada-es-member2": "1"}


async def test_suspended_work_shows_the_current_version(
    builder: RecordBuilder, opening: list[Record]
) -> None:
    ask = await views_of([*opening, *builder.decide(suspended("member1")), builder.input(NEW)])

    assert await ask(shown) == {"karmada-es-member1": "2", "karmada-es-member2": "1"}


async def test_work_changes_when_a_version_is_sent_not_when_it_is_written(
    builder: RecordBuilder, opening: list[Record]
) -> None:
    log = [*opening, builder.input(NEW), *builder.decide(sent(NEW, "member1", step=2))]
    ask = await views_of(log)

    def changed(rows: Rows) -> list[int]:
        return [change.number for change in changes.between(rows, len(opening), len(log), changes.WORK)]

    assert await ask(changed) == [len(log)]


@pytest.mark.parametrize("ends", ["sent", "removed", "current again"])
async def test_version_that_no_work_contains_is_forgotten(
    builder: RecordBuilder, opening: list[Record], ends: str
) -> None:
    written = [*opening, builder.input(NEW)]
    assert len(await _kept(written)) == 1

    match ends:
        case "sent":
            written += builder.decide(sent(NEW, "member1", step=2), sent(NEW, "member2", step=2))
        case "removed":
            written += builder.decide(removed("member1"), removed("member2"))
        case _:
            written.append(builder.input(structs.replace(OLD)))
    assert await _kept(written) == []


def labels(**texts: str) -> policies.ConfigurationApplied:
    """An override policy that adds labels."""
    overriders = {"labelsOverrider": [{"operator": "add", "value": texts}]}
    return policies.ConfigurationApplied(
        manifest=raw(override_policy("labels", namespace="default", overriders=overriders))
    )


def overridden(cluster: str, offset: int, step: int = 1) -> works.WorkApplied:
    """A work that contains the override policy as it was written at this offset."""
    rules = shapes.OverrideRef(
        kind="OverridePolicy",
        namespace="default",
        name="labels",
        rules=(0,),
        offset=offset,
        digest=str(offset),
    )
    return structs.replace(sent(OLD, cluster, step), overrides=(rules,))


def added(rows: Rows) -> dict[str, object]:
    """Return the labels that the applied override policy of each Work adds, by namespace."""
    shown: dict[str, object] = {}
    for work in object_tables.page(rows, Selection(kind=WORK)).items:
        (applied,) = json.loads(str(work.annotations["policy.karmada.io/applied-overrides"]))
        shown[work.namespace] = applied["overriders"]["labelsOverrider"][0]["value"]
    return shown


async def test_work_shows_the_override_policy_that_applied_when_it_was_sent(builder: RecordBuilder) -> None:
    outputs = (declared(KEY, "web", 4), overridden("member1", 0), overridden("member2", 0))
    written = [builder.input(labels(a="old")), builder.input(OLD), *builder.decide(*outputs)]
    written.append(builder.input(labels(a="new")))
    ask = await views_of(written)
    assert await ask(added) == {"karmada-es-member1": {"a": "old"}, "karmada-es-member2": {"a": "old"}}

    written += builder.decide(overridden("member1", 1, step=2))
    ask = await views_of(written)
    assert await ask(added) == {"karmada-es-member1": {"a": "new"}, "karmada-es-member2": {"a": "old"}}

    ref = shapes.WorkloadRef(api_version=POLICIES, kind="OverridePolicy", name="labels", namespace="default")
    written.append(builder.input(policies.ConfigurationDeleted(object=ref)))
    ask = await views_of(written)
    assert await ask(added) == {"karmada-es-member1": {"a": "new"}, "karmada-es-member2": {"a": "old"}}
    assert len(await _kept(written)) == 2

    written += builder.decide(sent(OLD, "member1", step=3), removed("member2"))
    assert await _kept(written) == []


async def _kept(batch: list[Record]) -> list[Any]:
    """Return the former versions that the views of these records keep."""
    log, store = MemoryLog(), await asyncio.to_thread(Store)
    await log.append(batch)
    projector = Projector(log, store, manifests.check)
    await projector.fold_to(log.last_number())
    projector.close()
    tables = await asyncio.to_thread(store.dump)
    await asyncio.to_thread(store.close)
    return tables["former_versions"]
