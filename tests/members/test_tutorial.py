"""The rebalancing tutorial with the default members: its numbers follow from their capacity reports."""

from typing import Final

from engine.log.memory import MemoryLog
from engine.reconcilers.worker import Worker
from engine.simulation import defaults, member_fleet
from events import clusters, policies, shapes, specs
from tests.projections import logs

_TAINT: Final = "workload-rebalancer-test"
_LIMITS: Final = {"limits": {"cpu": "10m", "memory": "10Mi"}}

DEPLOYMENT: Final = logs.manifest(
    "Deployment",
    "foo",
    "default",
    replicas=3,
    template={
        "metadata": {"labels": {"app": "foo"}},
        "spec": {"containers": [{"image": "nginx", "name": "foo", "resources": _LIMITS}]},
    },
)
POLICY: Final = logs.manifest(
    "PropagationPolicy",
    "default-pp",
    "default",
    "policy.karmada.io/v1alpha1",
    placement={
        "clusterTolerations": [
            {"effect": "NoExecute", "key": _TAINT, "operator": "Exists", "tolerationSeconds": 0}
        ],
        "clusterAffinity": {"clusterNames": ["member1", "member2"]},
        "replicaScheduling": {
            "replicaDivisionPreference": "Weighted",
            "replicaSchedulingType": "Divided",
            "weightPreference": {"dynamicWeight": "AvailableReplicas"},
        },
    },
    resourceSelectors=[
        {"apiVersion": "apps/v1", "kind": "Deployment", "name": "foo", "namespace": "default"}
    ],
)
REBALANCER: Final = logs.manifest(
    "WorkloadRebalancer",
    "demo",
    api_version="apps.karmada.io/v1alpha1",
    workloads=[{"apiVersion": "apps/v1", "kind": "Deployment", "name": "foo", "namespace": "default"}],
)


class Plane:
    """The worker and the default members on one log, under a manual clock."""

    def __init__(self) -> None:
        self.log = MemoryLog()
        self.pen = logs.Pen()
        self.worker = Worker(self.log, lambda: self.pen.at_ms)
        self.members = member_fleet.Members(self.log, lambda: self.pen.at_ms, defaults.three_members())

    async def say(self, data: shapes.Event) -> None:
        """Append an input, and run all turns until nothing is left to do."""
        await self.log.append([self.pen.input(data)])
        await self.settle()

    async def settle(self) -> None:
        """Run turns until the replicas have started and no event follows."""
        for _ in range(3):
            before = -1
            while before != self.log.last_number():
                before = self.log.last_number()
                await self.members.turn()
                await self.worker.turn()
            self.pen.at_ms += 1000

    def ready(self) -> dict[str, int]:
        """Return the ready replicas by member."""
        return {each.cluster: each.ready for each in self.members.workloads()}


async def test_replicas_of_the_tutorial_move_and_return() -> None:
    plane = Plane()
    await plane.worker.recover()
    await plane.settle()
    await plane.say(policies.PolicyApplied(manifest=logs.raw(POLICY)))
    await plane.say(specs.TemplateApplied(manifest=logs.raw(DEPLOYMENT)))
    assert plane.ready() == {"member1": 2, "member2": 1}

    taint = clusters.Taint(key=_TAINT, effect="NoExecute")
    await plane.say(clusters.ClusterTainted(name="member1", taint=taint))
    assert plane.ready() == {"member2": 3}
    await plane.say(clusters.ClusterUntainted(name="member1", key=_TAINT, effect="NoExecute"))
    assert plane.ready() == {"member2": 3}

    await plane.say(specs.RebalancerApplied(manifest=logs.raw(REBALANCER)))
    assert plane.ready() == {"member1": 2, "member2": 1}
    assert [each.labels for each in plane.members.pods("member1")] == [{"app": "foo"}] * 2
