"""Works as their own records, decisions about their bindings, namespaces and clusters change them."""

import msgspec

from events import clusters, decisions, enums, keys, policies, shapes, times, works
from events.json_values import Json, objects_at
from events.kube_objects import KubeObject
from events.records import Record
from projections import object_tables
from projections.agent_queries import namespaces_of
from projections.object_tables import Selection
from tests.builders.inputs import deployment
from tests.builders.manifests import manifest, raw
from tests.projections import stories
from tests.projections.asking import views_of
from tests.projections.logs import RecordBuilder

APP = "app-0"
KEY = keys.binding_key("Deployment", "default", APP)
MEMBER = "member1"
WORK_OF_APP = msgspec.structs.replace(stories.applied(KEY, APP, MEMBER), step=2)


class History:
    """The views of a log to which inputs and steps are added, a minute apart."""

    def __init__(self) -> None:
        self._builder = RecordBuilder()
        self._batch: list[Record] = []

    def write(self, *inputs: shapes.Event) -> None:
        self._builder.at_ms += 60_000
        self._batch += [self._builder.input(data) for data in inputs]

    def decide(self, *outputs: shapes.Event) -> str:
        """Add a step; return its time."""
        self._builder.at_ms += 60_000
        self._batch += self._builder.decide(*outputs)
        return times.to_seconds_text(self._builder.at_ms)

    async def works(self) -> dict[str, KubeObject]:
        """Return the Works by their namespaces; no cluster may have two."""
        ask = await views_of(self._batch)
        listed = await ask(
            lambda rows: object_tables.page(rows, Selection(kind=stories.WORK), limit=100).items
        )
        return {work.namespace: work for work in map(KubeObject, listed)}

    async def teams(self) -> list[str]:
        """Return the label ``team`` of the namespaces in ``MEMBER``, which the Works there have too."""
        ask = await views_of(self._batch)
        teams = await ask(lambda rows: [item.manifest.labels["team"] for item in namespaces_of(rows, MEMBER)])
        listed = (await self.works()).values()
        sent_lists = [objects_at(work.document, "spec", "workload", "manifests") for work in listed]
        assert [KubeObject(sent).labels["team"] for (sent,) in sent_lists] == teams
        return teams


async def history(*outputs: shapes.Event) -> History:
    """Return a history in which a Deployment has a binding, and a work in one cluster."""
    begun = History()
    begun.write(deployment(APP, 3))
    begun.decide(stories.declared(KEY, APP, 3), stories.claimed(KEY), WORK_OF_APP, *outputs)
    return begun


def report(*, is_applied: bool = True, ready: int = 0) -> decisions.StatusAggregated:
    member = decisions.MemberStatus(
        cluster=MEMBER,
        applied=is_applied,
        message="" if is_applied else "refused",
        health=enums.Health.HEALTHY,
        replicas=2,
        updated=2,
        ready=ready,
        available=ready,
    )
    return decisions.StatusAggregated(
        key=KEY, members=(member,), observed_generation=1, fully_applied=is_applied
    )


def suspended(step: int, replicas: int) -> works.WorkSuspended:
    pending = msgspec.structs.replace(WORK_OF_APP, step=step, replicas=replicas)
    return works.WorkSuspended(cluster=MEMBER, key=KEY, term=1, step=step, pending=pending)


def since(work: KubeObject, condition: str) -> object:
    """Return when a condition of a Work last changed."""
    times_of = {
        str(shown["type"]): shown["lastTransitionTime"]
        for shown in objects_at(work.document, "status", "conditions")
    }
    return times_of[condition]


async def only(history: History) -> KubeObject:
    (work,) = (await history.works()).values()
    return work


async def test_condition_applied_keeps_its_time_while_reports_say_the_same() -> None:
    shown = await history()
    first = shown.decide(report())
    shown.decide(report(ready=2))
    assert since(await only(shown), "Applied") == first
    failed = shown.decide(report(is_applied=False))
    assert since(await only(shown), "Applied") == failed


async def test_condition_dispatching_keeps_its_time_while_the_work_stays_suspended() -> None:
    shown = await history()
    begun = shown.decide(suspended(3, 4))
    shown.decide(suspended(4, 5))
    assert since(await only(shown), "Dispatching") == begun
    ended = shown.decide(msgspec.structs.replace(WORK_OF_APP, step=5))
    assert since(await only(shown), "Dispatching") == ended


async def test_work_of_an_older_step_changes_nothing() -> None:
    shown = await history()
    before = await only(shown)
    shown.decide(msgspec.structs.replace(WORK_OF_APP, step=1, replicas=9))
    assert await only(shown) == before


async def test_claim_changes_the_works_only_if_it_is_another_one() -> None:
    shown = await history()
    before = await only(shown)
    shown.decide(stories.claimed(KEY))
    assert await only(shown) == before
    other = msgspec.structs.replace(
        stories.claimed(KEY),
        policy=shapes.PolicyRef(kind="PropagationPolicy", name="other", namespace="default"),
    )
    shown.decide(other)
    after = await only(shown)
    (sent,) = objects_at(after.document, "spec", "workload", "manifests")
    assert KubeObject(sent).annotations["propagationpolicy.karmada.io/name"] == "other"
    assert int(after.resource_version) > int(before.resource_version)


async def test_work_that_is_sent_again_has_the_last_report_of_its_cluster() -> None:
    shown = await history()
    shown.decide(report(ready=2))
    shown.decide(works.WorkRemoved(cluster=MEMBER, key=KEY, term=1, step=3))
    assert await shown.works() == {}
    shown.decide(msgspec.structs.replace(WORK_OF_APP, step=4))
    (status,) = objects_at((await only(shown)).document, "status", "manifestStatuses")
    assert status["status"] == {
        "replicas": 2,
        "updatedReplicas": 2,
        "readyReplicas": 2,
        "availableReplicas": 2,
    }


SKIPPED = {"namespace.karmada.io/skip-auto-propagation": "true"}


def namespace(**labels: str) -> policies.NamespaceApplied:
    value: Json = manifest("v1", "Namespace", "shop", metadata={"labels": labels})
    return policies.NamespaceApplied(manifest=raw(value))


async def test_namespaces_have_a_work_in_each_cluster_until_it_leaves() -> None:
    shown = History()
    shown.write(clusters.ClusterJoined(name="member1"), namespace(), clusters.ClusterJoined(name="member2"))
    first = await shown.works()
    assert sorted(first) == ["karmada-es-member1", "karmada-es-member2"]
    shown.write(clusters.ClusterLeaving(name="member1"))
    assert await shown.works() == {"karmada-es-member2": first["karmada-es-member2"]}
    shown.write(clusters.ClusterLeft(name="member1"), clusters.ClusterJoined(name="member1"))
    again = await shown.works()
    assert again["karmada-es-member1"].uid != first["karmada-es-member1"].uid


async def test_deleted_namespace_has_no_works() -> None:
    shown = History()
    shown.write(clusters.ClusterJoined(name="member1"), namespace())
    shown.write(policies.NamespaceDeleted(name="shop"))
    assert await shown.works() == {}


async def test_namespace_that_is_no_longer_propagated_keeps_its_works_but_gets_no_new_ones() -> None:
    shown = History()
    shown.write(clusters.ClusterJoined(name="member1"), namespace())
    shown.write(namespace(**SKIPPED))
    shown.write(clusters.ClusterJoined(name="member2"))
    assert sorted(await shown.works()) == ["karmada-es-member1"]
    shown.write(clusters.ClusterLeaving(name="member1"))
    assert await shown.works() == {}


async def test_works_of_a_namespace_keep_its_labels_while_it_is_not_propagated() -> None:
    shown = History()
    shown.write(clusters.ClusterJoined(name="member1"), namespace(team="blue"))
    before = await shown.works()
    shown.write(namespace(team="red", **SKIPPED), namespace(team="green", **SKIPPED))
    assert await shown.works() == before
    assert await shown.teams() == ["blue"]

    shown.write(namespace(team="green"))
    assert await shown.teams() == ["green"]
    (after,) = (await shown.works()).values()
    assert int(after.resource_version) > int(before["karmada-es-member1"].resource_version)


async def test_namespace_that_is_created_again_has_nothing_of_the_former_one() -> None:
    shown = History()
    shown.write(clusters.ClusterJoined(name="member1"), namespace(team="blue"), namespace(**SKIPPED))
    shown.write(policies.NamespaceDeleted(name="shop"), namespace(team="red"))
    assert await shown.teams() == ["red"]
