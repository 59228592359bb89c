"""The rebalancing tutorial with the default members: its numbers follow from their capacity reports."""

from typing import Final

from engine.log.local import MemoryLog
from engine.reconcilers.worker import Worker
from engine.simulation import defaults, member_fleet
from events import clusters, shapes
from tests.builders import inputs, manifests
from tests.projections import logs

_TAINT: Final = "workload-rebalancer-test"
_LIMITS: Final = {"limits": {"cpu": "10m", "memory": "10Mi"}}

DEPLOYMENT: Final = inputs.applied(
    manifests.deployment(
        "foo", 3, "default", containers=[{"image": "nginx", "name": "foo", "resources": _LIMITS}]
    )
)
POLICY: Final = inputs.policy(
    "default-pp",
    manifests.on(
        "member1",
        "member2",
        scheduling=manifests.DYNAMIC,
        clusterTolerations=[
            {"effect": "NoExecute", "key": _TAINT, "operator": "Exists", "tolerationSeconds": 0}
        ],
    ),
    manifests.selector("foo", namespace="default"),
)
REBALANCER: Final = inputs.rebalancer("demo", inputs.ref("foo"))


class Plane:
    """The worker and the default members on one log, under a manual clock."""

    def __init__(self) -> None:
        self.log = MemoryLog()
        self.builder = logs.RecordBuilder()
        self.worker = Worker(self.log, lambda: self.builder.at_ms)
        self.members = member_fleet.Members(self.log, lambda: self.builder.at_ms, defaults.three_members())

    async def submit(self, data: shapes.Event) -> None:
        """Append an input, and run all turns until nothing is left to do."""
        await self.log.append([self.builder.input(data)])
        await self.settle()

    async def settle(self) -> None:
        """Run turns until the replicas have started and no event follows."""
        for _ in range(3):
            before = -1
            while before != self.log.last_number():
                before = self.log.last_number()
                await self.members.turn()
                await self.worker.turn()
            self.builder.at_ms += 1000

    def ready(self) -> dict[str, int]:
        """Return the ready replicas by member."""
        return {workload.cluster: workload.ready for workload in self.members.workloads()}


async def test_replicas_of_the_tutorial_move_and_return() -> None:
    plane = Plane()
    await plane.worker.recover()
    await plane.settle()
    await plane.submit(POLICY)
    await plane.submit(DEPLOYMENT)
    assert plane.ready() == {"member1": 2, "member2": 1}

    taint = clusters.Taint(key=_TAINT, effect="NoExecute")
    await plane.submit(clusters.ClusterTainted(name="member1", taint=taint))
    assert plane.ready() == {"member2": 3}
    await plane.submit(clusters.ClusterUntainted(name="member1", key=_TAINT, effect="NoExecute"))
    assert plane.ready() == {"member2": 3}

    await plane.submit(REBALANCER)
    assert plane.ready() == {"member1": 2, "member2": 1}
    assert [pod.labels for pod in plane.members.pods("member1")] == [{"app": "foo"}] * 2
