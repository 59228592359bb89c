"""Bindings whose clusters depend on those of other workloads (``spec.workloadAffinityGroups``)."""

from typing import Final

import pytest

from engine.bench.karmada_api import binding, cluster, divided
from engine.log import local
from engine.scheduler.decider import Decider
from events import observations, shapes
from tests.scheduler.api import Api, Json, serving
from tests.scheduler.scheduling import HOUR_MS, NAME, karmada, observed, placed, scheduled, scheduling
from tests.waiting import until_async

MEMBERS: Final = ("member1", "member2", "member3")
ONE: Final[Json] = {
    "clusterAffinity": {"clusterNames": list(MEMBERS)},
    "spreadConstraints": [{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}],
}
"""A placement in one cluster."""

APART: Final[Json] = {"antiAffinityGroup": "tier=a"}
TOGETHER: Final[Json] = {"affinityGroup": "team=x"}
WEB: Final = ("ResourceBinding", "default", "web-deployment")


class Plane:
    """A Karmada with three clusters, whose objects a decider takes when they change."""

    def __init__(self) -> None:
        self.api, self.decider = Api(), Decider(NAME)
        self.taken: list[shapes.Event] = []
        for name in MEMBERS:
            self.api.put("clusters", cluster(name))
        for document in self.api.of_kind("clusters"):
            self.take(observed(document))

    def take(self, data: shapes.Event) -> None:
        self.taken.append(data)
        self.decider.take(data)

    def restart(self) -> None:
        """Continue with a decider that has read the log of the former one."""
        self.decider = Decider(NAME)
        for data in self.taken:
            self.decider.take(data)
        self.decider.begin()

    def put(
        self, name: str, groups: Json, placement: Json = ONE, *, scheduler: str = NAME, **spec: object
    ) -> None:
        manifest = binding(name, 2, placement, scheduler, workloadAffinityGroups=groups, **spec)
        self.api.put("resourcebindings", manifest)
        self.observe(name)

    def observe(self, name: str) -> None:
        self.take(observed(self.api.objects["resourcebindings", "default", f"{name}-deployment"]))

    def change(self, name: str, **spec: object) -> None:
        self.api.change("resourcebindings", "default", f"{name}-deployment", **spec)
        self.observe(name)

    def delete(self, name: str) -> None:
        self.take(
            observations.ObjectVanished(
                kind="ResourceBinding", namespace="default", name=f"{name}-deployment"
            )
        )

    def decide(self) -> dict[str, set[str] | str]:
        """Decide on all due bindings; return the clusters of each by workload, or the message of its failure."""
        made = self.decider.decide(HOUR_MS, 0, 100)
        for decision in made:
            self.take(decision)
        return {
            decision.name.removesuffix("-deployment"): set(decision.clusters)
            if decision.status == "True"
            else decision.message
            for decision in made
        }


def on(*names: str) -> list[Json]:
    return [{"name": name, "replicas": 2} for name in names]


def test_workloads_kept_apart_get_different_clusters_in_one_batch() -> None:
    plane = Plane()
    for name in ("web", "api", "db", "late"):
        plane.put(name, APART)
    decided = plane.decide()
    failure = decided.pop("late")
    assert sorted(map(sorted, decided.values())) == [["member1"], ["member2"], ["member3"]]
    assert failure == (
        "0/3 clusters are available: 3 cluster already has workload with the same anti-affinity group."
    )


def test_workloads_kept_together_follow_the_first_one_in_one_batch() -> None:
    plane = Plane()
    plane.put("web", TOGETHER, {**ONE, "clusterAffinity": {"clusterNames": ["member3"]}})
    plane.put("api", TOGETHER)
    plane.put("db", TOGETHER, {**ONE, "clusterAffinity": {"clusterNames": ["member1"]}})
    assert plane.decide() == {
        "web": {"member3"},
        "api": {"member3"},
        "db": "0/3 clusters are available: 1 ResourceBinding with the same affinity group does not target this"
        " cluster, 2 cluster(s) did not match the placement cluster affinity constraint.",
    }


def test_workload_kept_together_uses_only_clusters_that_all_others_have() -> None:
    plane = Plane()
    plane.put("web", TOGETHER, clusters=on("member1", "member2"), schedulerName="default-scheduler")
    plane.put("api", TOGETHER, clusters=on("member2", "member3"), schedulerName="default-scheduler")
    plane.put("waiting", TOGETHER, schedulerName="default-scheduler")
    plane.put("db", TOGETHER, divided(*MEMBERS))
    assert plane.decide() == {"db": {"member2"}}


@pytest.mark.parametrize(
    "spec",
    [
        {"schedulerName": "default-scheduler"},
        {"suspension": {"scheduling": True}},
    ],
)
def test_bindings_that_are_not_scheduled_here_belong_to_groups(spec: Json) -> None:
    plane = Plane()
    plane.put("other", APART, clusters=on("member1", "member2"), **spec)
    plane.put("web", APART, divided(*MEMBERS))
    assert plane.decide() == {"web": {"member3"}}


@pytest.mark.parametrize(
    ("groups", "namespace"),
    [({"antiAffinityGroup": "tier=b"}, "default"), (APART, "other"), (None, "default")],
)
def test_bindings_of_other_groups_and_namespaces_exclude_nothing(groups: Json | None, namespace: str) -> None:
    plane = Plane()
    other = binding(
        "other", 2, ONE, "default-scheduler", workloadAffinityGroups=groups, clusters=on("member1")
    )
    other["metadata"]["namespace"] = namespace
    plane.api.put("resourcebindings", other)
    plane.decider.take(observed(plane.api.objects["resourcebindings", namespace, "other-deployment"]))
    plane.put("web", APART, {**ONE, "clusterAffinity": {"clusterNames": ["member1"]}})
    assert plane.decide() == {"web": {"member1"}}


def test_workload_keeps_the_clusters_that_it_has_already() -> None:
    plane = Plane()
    plane.put("other", APART, clusters=on("member1"), schedulerName="default-scheduler")
    plane.put("web", APART, divided(*MEMBERS), clusters=on("member1"))
    plane.change("web", replicas=4)
    assert plane.decide() == {"web": {"member1", "member2", "member3"}}
    plane.put("api", APART, divided(*MEMBERS), clusters=on("member2"))
    plane.change("api", replicas=4)
    assert plane.decide() == {"api": {"member2"}}


def test_deleted_workload_leaves_its_group() -> None:
    plane = Plane()
    placement = {**ONE, "clusterAffinity": {"clusterNames": ["member1"]}}
    plane.put("other", APART, clusters=on("member1"), schedulerName="default-scheduler")
    plane.put("web", APART, placement)
    assert "anti-affinity" in str(plane.decide()["web"])
    plane.delete("other")
    assert plane.decide() == {}
    plane.change("web", replicas=3)
    assert plane.decide() == {"web": {"member1"}}


def test_decision_that_another_change_made_obsolete_excludes_nothing() -> None:
    plane = Plane()
    only = {**ONE, "clusterAffinity": {"clusterNames": ["member1"]}}
    plane.put("web", APART, only)
    assert plane.decide() == {"web": {"member1"}}
    # The observer sees this change before the decision is written.
    plane.change("web", placement={**ONE, "clusterAffinity": {"clusterNames": ["member2"]}})
    plane.put("api", APART, only)
    assert plane.decide() == {"web": {"member2"}, "api": {"member1"}}


def test_decision_applies_to_its_group_while_older_versions_are_observed() -> None:
    plane = Plane()
    only = {**ONE, "clusterAffinity": {"clusterNames": ["member1"]}}
    plane.put("web", APART, only)
    assert plane.decide() == {"web": {"member1"}}
    manifest = plane.api.objects["resourcebindings", "default", "web-deployment"]
    plane.api.put("resourcebindings", {**manifest, "status": {"aggregatedStatus": []}})
    plane.observe("web")
    plane.put("api", APART, only)
    assert "anti-affinity" in str(plane.decide()["api"])


def test_cluster_scoped_bindings_have_no_groups() -> None:
    plane = Plane()
    for name in ("reader", "writer"):
        manifest = binding(name, 0, ONE, workloadAffinityGroups=APART)
        del manifest["metadata"]["namespace"]
        plane.api.put("clusterresourcebindings", manifest)
    for document in plane.api.of_kind("clusterresourcebindings"):
        plane.decider.take(observed(document))
    first, second = plane.decide().values()
    assert first == second


@pytest.mark.virtual_time
async def test_workloads_of_a_group_are_written_to_different_clusters() -> None:
    api, log = karmada(), local.MemoryLog()
    names = [f"web{number}" for number in range(3)]
    async with serving(api) as access:
        for part in (names[:2], names[2:]):
            for name in part:
                api.put("resourcebindings", binding(name, 2, ONE, workloadAffinityGroups=APART))
            # The second scheduler learns the groups from the log of the first one.
            async with scheduling(access, log):
                await until_async(lambda names=part: all(scheduled(api, name) for name in names))
    assert sorted(placed(api, name).popitem()[0] for name in names[:2]) == ["member1", "member2"]
    assert (placed(api, "web2"), scheduled(api, "web2")) == ({}, "NoClusterFit")


def test_refused_decision_excludes_nothing_until_it_is_tried_again() -> None:
    plane = Plane()
    only = {**ONE, "clusterAffinity": {"clusterNames": ["member1"]}}
    plane.put("web", APART, only)
    assert plane.decide() == {"web": {"member1"}}
    plane.decider.refuse(WEB)
    plane.decider.retry(WEB)
    plane.put("late", APART, only)
    assert "anti-affinity" in str(plane.decide()["late"])
    plane.decider.refuse(WEB)
    plane.put("api", APART, only)
    assert plane.decide() == {"api": {"member1"}}
    plane.decider.retry(WEB)
    assert plane.decider.pending(WEB) is None
    assert "anti-affinity" in str(plane.decide()["web"])


def test_refused_decision_of_a_group_that_is_kept_together_is_made_again_where_the_others_are() -> None:
    plane = Plane()
    plane.put("web", TOGETHER, {**ONE, "clusterAffinity": {"clusterNames": ["member1"]}})
    plane.decide()
    plane.decider.refuse(WEB)
    plane.put("api", TOGETHER, {**ONE, "clusterAffinity": {"clusterNames": ["member2"]}})
    assert plane.decide() == {"api": {"member2"}}
    plane.decider.retry(WEB)
    assert "same affinity group" in str(plane.decide()["web"])


def test_restarted_scheduler_tries_no_refused_decision_that_its_group_excludes_meanwhile() -> None:
    plane = Plane()
    only = {**ONE, "clusterAffinity": {"clusterNames": ["member1"]}}
    plane.put("web", APART, only)
    assert plane.decide() == {"web": {"member1"}}
    plane.decider.refuse(WEB)
    plane.put("api", APART, only)
    assert plane.decide() == {"api": {"member1"}}
    plane.change("api", clusters=on("member1"))
    plane.restart()
    assert plane.decider.pending(WEB) is None
    assert "anti-affinity" in str(plane.decide()["web"])


def test_restarted_scheduler_keeps_the_pending_decisions_of_a_group() -> None:
    plane = Plane()
    for name in ("web", "api"):
        plane.put(name, APART)
    decided = plane.decide()
    plane.restart()
    plane.put("db", APART)
    assert plane.decide().keys() == {"db"}
    assert sorted(plane.decider.all_pending()) == [
        ("ResourceBinding", "default", f"{name}-deployment") for name in ("api", "db", "web")
    ]
    assert len(set(map(str, decided.values()))) == 2


def test_newer_decision_on_a_refused_binding_applies_to_its_group() -> None:
    plane = Plane()
    plane.put("web", APART, {**ONE, "clusterAffinity": {"clusterNames": ["member1"]}})
    plane.decide()
    plane.decider.refuse(WEB)
    plane.change("web", placement={**ONE, "clusterAffinity": {"clusterNames": ["member2"]}})
    assert plane.decide() == {"web": {"member2"}}
    plane.put("api", APART, {**ONE, "clusterAffinity": {"clusterNames": ["member2"]}})
    assert "anti-affinity" in str(plane.decide()["api"])
