"""Faults around an agent: a throttling or unreachable member API, a killed agent, a lost checkpoint."""

from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.agent import proxy
from tests.agent.conftest import Installation
from tests.agent.servers import Json, Server, deployment_path, eventually, join, replicas_of, serving, up
from tests.brokers.processes import free_ports
from tests.builders.manifests import (
    POD,
    deployment,
    manifest,
    on,
    pod_template,
    policy,
    selector,
)

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]


def test_throttled_api_receives_all_works_in_the_end(installation: Installation, tmp_path: Path) -> None:
    control, member = installation.control, installation.member
    with proxy.before(member) as between:
        configuration = join(control, "busy", between.kubeconfig(tmp_path / "kubeconfig"), tmp_path)
        with serving(tmp_path, configuration):
            control.apply(deployment("busy-0", 2), policy("busy-0", on("busy"), selector("busy-0")))
            eventually(lambda: replicas_of(member, "busy-0") == 2, "the first Deployment")
            between.is_throttling = True
            for count in range(1, 6):
                control.apply(
                    deployment(f"busy-{count}", 2),
                    policy(f"busy-{count}", on("busy"), selector(f"busy-{count}")),
                )
            eventually(lambda: between.throttled > 3, "refused requests")
            # A throttling API is still reachable.
            eventually(lambda: control.condition("busy").get("status") == "True", "a ready cluster")
            between.is_throttling = False
            eventually(
                lambda: all(replicas_of(member, f"busy-{count}") == 2 for count in range(6)), "all of them"
            )
    assert [written(member, f"busy-{count}") for count in range(6)] == [1] * 6


def test_unreachable_api_makes_only_its_cluster_unready(installation: Installation, tmp_path: Path) -> None:
    control, member = installation.control, installation.member
    with proxy.before(member) as between:
        gone_config = join(control, "gone", between.kubeconfig(tmp_path / "kubeconfig"), tmp_path)
        there_config = join(control, "there", member.kubeconfig, tmp_path)
        with serving(tmp_path, gone_config, there_config, grace=20):
            eventually(lambda: control.condition("gone").get("status") == "True", "a ready cluster")
            between.fall()
            eventually(lambda: control.condition("gone").get("status") == "False", "an unready cluster")
            assert control.condition("gone")["reason"] == "ClusterNotReachable"
            control.apply(deployment("gone", 2), policy("gone", on("gone"), selector("gone")))
            control.apply(deployment("there", 2), policy("there", on("there"), selector("there")))
            eventually(lambda: replicas_of(member, "there") == 2, "the Deployment of the other cluster")
            assert replicas_of(member, "gone") is None

            between.is_down = False
            eventually(lambda: replicas_of(member, "gone") == 2, "the work of the outage")
            eventually(lambda: control.condition("gone").get("status") == "True", "a ready cluster again")
            member.patch(deployment_path("gone"), {"spec": {"replicas": 5}})
            eventually(lambda: replicas_of(member, "gone") == 2, "the corrected drift after the outage")
    assert written(member, "there") == 1


def test_killed_agent_continues_without_repeated_writes(installation: Installation, tmp_path: Path) -> None:
    control, member = installation.control, installation.member
    names = [f"load-{count}" for count in range(40)]
    theirs = member.post("/apis/apps/v1/namespaces/default/deployments", deployment("not-ours", 2))
    with serving(tmp_path, join(control, "load", member.kubeconfig, tmp_path)) as agent:
        eventually(lambda: control.condition("load").get("status") == "True", "a ready cluster")
        control.apply(
            policy("load", on("load"), selector(labelSelector=LOADED)),
            *(deployment(name, 2, metadata={"labels": {"load": "yes"}}) for name in names),
        )
        for minimum in (3, 12, 25):
            eventually(lambda: sum(written(member, name) for name in names) >= minimum, "some Deployments")  # noqa: B023
            agent.kill()
            agent.launch()
        eventually(lambda: all(replicas_of(member, name) == 2 for name in names), "all Deployments")

        agent.kill()
        control.apply(*(deployment(name, 3, metadata={"labels": {"load": "yes"}}) for name in names[:10]))
        for name in names[30:]:
            control.delete("deployment", name)
        agent.launch()
        eventually(
            lambda: (
                all(replicas_of(member, name) == 3 for name in names[:10])
                and all(replicas_of(member, name) is None for name in names[30:])
            ),
            "the changes made during the outage",
        )
        eventually(
            lambda: all(
                control.member_status(f"default/{name}-deployment", "load").get("applied")
                for name in names[:30]
            ),
            "the reports",
        )
    assert [written(member, name) for name in names[:10]] == [2] * 10
    assert [written(member, name) for name in names[10:]] == [1] * 30
    assert member.get(deployment_path("not-ours")) == theirs


def test_agent_reconnects_to_a_restarted_control_plane(installation: Installation, tmp_path: Path) -> None:
    member, port = installation.member, str(free_ports(1)[0])
    with ExitStack() as agents:
        with ExitStack() as stack:
            control = up(tmp_path / "control", stack, "--port", port)
            configuration = join(control, "away", member.kubeconfig, tmp_path)
            agents.enter_context(serving(tmp_path, configuration))
            control.apply(deployment("away", 2), policy("away", on("away"), selector("away")))
            eventually(lambda: replicas_of(member, "away") == 2, "the Deployment")
        member.patch(deployment_path("away"), {"spec": {"replicas": 1}})
        report_ready(member, "away")
        with ExitStack() as stack:
            control = up(tmp_path / "control", stack, "--port", port)
            eventually(lambda: replicas_of(member, "away") == 2, "the corrected drift")
            report_ready(member, "away")
            eventually(
                lambda: control.member_status("default/away-deployment", "away").get("health") == "Healthy",
                "the status reported after the restart",
            )
            control.apply(deployment("away", 3))
            eventually(lambda: replicas_of(member, "away") == 3, "the next work")


def test_agent_without_its_checkpoint_restores_the_same_state(
    installation: Installation, tmp_path: Path
) -> None:
    control, member = installation.control, installation.member
    names = ["lost-stays", "lost-goes", "lost-new"]
    with serving(tmp_path, join(control, "lost", member.kubeconfig, tmp_path)) as agent:
        for name in names[:2]:
            control.apply(deployment(name, 2), policy(name, on("lost"), selector(name)))
        eventually(lambda: all(replicas_of(member, name) == 2 for name in names[:2]), "both Deployments")
        agent.kill()
        for path in tmp_path.glob("agent.sqlite*"):
            path.unlink()
        control.delete("deployment", "lost-goes")
        control.apply(deployment("lost-new", 2), policy("lost-new", on("lost"), selector("lost-new")))
        agent.launch()
        eventually(lambda: replicas_of(member, "lost-new") == 2, "the new Deployment")
        eventually(lambda: replicas_of(member, "lost-goes") is None, "the removal of the deleted Deployment")
        assert replicas_of(member, "lost-stays") == 2
    assert written(member, "lost-stays") == 1


def test_capacity_is_reported_and_a_dead_agent_is_silenced(
    installation: Installation, tmp_path: Path
) -> None:
    control, member = installation.control, installation.member
    member.post("/api/v1/nodes", node("node-1"))
    member.patch("/api/v1/nodes/node-1/status", {"status": NODE_STATUS})
    member.post("/api/v1/namespaces/default/pods", pod("runs", "node-1"))
    with serving(tmp_path, join(control, "room", member.kubeconfig, tmp_path), grace=8) as agent:
        eventually(lambda: summary(control).get("allocated", {}).get("cpu") == "500m", "the capacity")
        status = control.ask("clusters/room")["status"]
        assert status["nodeSummary"] == {"totalNum": 1, "readyNum": 1}
        assert summary(control)["allocatable"] == {"cpu": "4", "memory": "8Gi", "pods": "110"}
        member.post("/api/v1/namespaces/default/pods", pod("waits", ""))
        eventually(
            lambda: summary(control).get("allocating", {}).get("cpu") == "500m", "the pending replicas"
        )
        enabled = {enablement["groupVersion"] for enablement in status["apiEnablements"]}
        assert {"v1", "apps/v1", "batch/v1"} <= enabled
        eventually(lambda: control.condition("room").get("status") == "True", "a ready cluster")

        agent.kill()
        eventually(
            lambda: control.condition("room").get("status") == "Unknown", "the condition of a silent agent"
        )
        agent.launch()
        eventually(lambda: control.condition("room").get("status") == "True", "a report of the agent")


LOADED: Json = {"matchLabels": {"load": "yes"}}
NODE_STATUS: Json = {
    "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"},
    "conditions": [{"type": "Ready", "status": "True"}],
}


def written(member: Server, name: str) -> int:
    """Return how often a Deployment was written in a cluster, according to the cluster's own log."""
    records = member.records("specs", f"default/{name}-deployment")
    return sum("template-applied" in record["type"] for record in records)


def summary(control: Server) -> Json:
    return control.ask("clusters/room").get("status", {}).get("resourceSummary", {})


def report_ready(member: Server, name: str) -> None:
    """Write the status that a controller writes once both replicas run."""
    numbers = dict.fromkeys(("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"), 2)
    generation = (member.get(deployment_path(name)) or {})["metadata"]["generation"]
    status = {"status": {**numbers, "observedGeneration": generation}}
    member.patch(deployment_path(name) + "/status", status)


def node(name: str) -> Json:
    return manifest("v1", "Node", name)


def pod(name: str, on: str) -> Json:
    spec = pod_template(name, requests={"cpu": "500m"}, **({"nodeName": on} if on else {}))["spec"]
    return manifest(*POD, name, "default", spec=spec)
