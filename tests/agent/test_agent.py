"""An agent as a process: works are applied, kept, reported and removed in a cluster."""

import itertools
import json
import time
from pathlib import Path

import pytest

from engine.agent import configuration
from engine.agent.checkpoint import Checkpoint
from engine.cli import main
from engine.domain import marks
from tests.agent.conftest import Installation
from tests.agent.servers import (
    CLUSTERS,
    PATIENCE_S,
    command,
    deployment_path,
    eventually,
    join,
    label_of,
    replicas_of,
    serving,
)
from tests.builders.manifests import (
    CONFIG_MAP,
    NAMESPACE,
    cluster,
    cluster_policy,
    config_map,
    definition,
    deployment,
    manifest,
    on,
    override_policy,
    policy,
    selector,
    selector_of,
)

BINDINGS = "/apis/work.karmada.io/v1alpha2/namespaces/default/resourcebindings/"
SOON_S = 20.0
"""Before a member is asked for its kinds by the clock."""

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]


def test_workload_is_applied_scaled_reported_and_removed(installation: Installation, tmp_path: Path) -> None:
    control, member = installation.control, installation.member
    with serving(tmp_path, join(control, "plain", member.kubeconfig, tmp_path)):
        control.apply(deployment("plain", 2), policy("plain", on("plain"), selector("plain")))
        eventually(lambda: replicas_of(member, "plain") == 2, "the Deployment")
        applied = member.get(deployment_path("plain")) or {}
        assert applied["metadata"]["labels"]["karmada.io/managed"] == "true"
        annotations = applied["metadata"]["annotations"]
        assert annotations["work.karmada.io/namespace"] == "karmada-es-plain"
        assert annotations["work.karmada.io/name"] == marks.work_name("Deployment", "default", "plain")
        template = control.kube.get(deployment_path("plain")).json()["metadata"]
        assert annotations["resourcetemplate.karmada.io/uid"] == template["uid"]
        binding = control.kube.get(BINDINGS + "plain-deployment").json()["metadata"]
        identity = "resourcebinding.karmada.io/permanent-id"
        assert applied["metadata"]["labels"][identity] == binding["labels"][identity]

        control.apply(deployment("plain", 3))
        eventually(lambda: replicas_of(member, "plain") == 3, "the scaled Deployment")
        numbers = dict.fromkeys(("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"), 3)
        generation = (member.get(deployment_path("plain")) or {})["metadata"]["generation"]
        status = {"status": {**numbers, "observedGeneration": generation}}
        member.patch(deployment_path("plain") + "/status", status)
        eventually(
            lambda: (
                control.member_status("default/plain-deployment", "plain").get("health") == "Healthy"
                and control.member_status("default/plain-deployment", "plain")["status"]["readyReplicas"] == 3
            ),
            "the status",
        )

        control.delete("deployment", "plain")
        eventually(lambda: replicas_of(member, "plain") is None, "the removal")


def test_joined_cluster_has_the_uid_of_its_system_namespace(
    installation: Installation, tmp_path: Path
) -> None:
    control, member = installation.control, installation.member
    join(control, "identified", member.kubeconfig, tmp_path)
    system = member.get("/api/v1/namespaces/kube-system") or {}
    assert control.kube.get(CLUSTERS + "identified").json()["spec"]["id"] == system["metadata"]["uid"]


def test_join_prints_one_json_value_and_reports_a_file_that_cannot_be_written(
    installation: Installation, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    join(installation.control, "printed", installation.member.kubeconfig, tmp_path)
    words = ["join", "printed", "--kubeconfig", str(installation.member.kubeconfig), "--json", "--data"]
    words += [str(installation.control.directory), "--to"]
    assert main.run([*words, str(tmp_path / "agent.json")]) == 0
    assert [joined["name"] for joined in json.loads(capsys.readouterr().out)] == ["printed"]
    assert main.run([*words, str(tmp_path / "absent" / "agent.json")]) == 1
    assert "No such file or directory" in capsys.readouterr().err


def test_cluster_joins_by_one_name_only(installation: Installation, tmp_path: Path) -> None:
    control, member = installation.control, installation.member
    join(control, "first", member.kubeconfig, tmp_path)
    words = "--kubeconfig", str(member.kubeconfig), "--to", str(tmp_path / "agent.json")
    assert "cluster/first configured" in command(control, "join", "first", "--provider", "aws", *words)
    refused = command(control, "join", "second", *words, code=1)
    assert "the same cluster is already registered as cluster/first" in refused

    control.post(CLUSTERS, cluster("taken", id="5b0f", provider="gcp"))
    assert "cluster/taken already exists" in command(control, "join", "taken", *words, code=1)
    assert control.ask("clusters/taken")["spec"]["provider"] == "gcp"


def test_agent_token_is_refused_by_the_kubernetes_api(installation: Installation, tmp_path: Path) -> None:
    control, member = installation.control, installation.member
    token = configuration.read(join(control, "token", member.kubeconfig, tmp_path)).token
    bearer = {"authorization": f"Bearer {token}"}
    assert control.http.get("/api/v1/agents/token", headers=bearer).status_code == 200
    assert control.http.get("/api/v1/objects", headers=bearer).status_code == 401
    for path in ("/api/v1/namespaces", "/apis/cluster.karmada.io/v1alpha1/clusters/token/proxy/api"):
        assert control.kube.get(path, headers=bearer).status_code == 401


def test_drift_is_corrected(installation: Installation, tmp_path: Path) -> None:
    control, member = installation.control, installation.member
    with serving(tmp_path, join(control, "drift", member.kubeconfig, tmp_path)):
        control.apply(deployment("drift", 2), policy("drift", on("drift"), selector("drift")))
        eventually(lambda: replicas_of(member, "drift") == 2, "the Deployment")

        member.patch(deployment_path("drift"), {"spec": {"replicas": 7}})
        eventually(lambda: replicas_of(member, "drift") == 2, "the replicas of the template")

        member.patch(deployment_path("drift"), {"metadata": {"labels": {"karmada.io/managed": None}}})
        eventually(lambda: label_of(member, "drift", "karmada.io/managed") == "true", "the label")

        uid = (member.get(deployment_path("drift")) or {})["metadata"]["uid"]
        member.kube.delete(deployment_path("drift"))
        eventually(lambda: replicas_of(member, "drift") == 2, "the Deployment again")
        assert (member.get(deployment_path("drift")) or {})["metadata"]["uid"] != uid


def test_fields_of_others_are_kept(installation: Installation, tmp_path: Path) -> None:
    control, member = installation.control, installation.member
    with serving(tmp_path, join(control, "added", member.kubeconfig, tmp_path)):
        control.apply(deployment("added", 2), policy("added", on("added"), selector("added")))
        eventually(lambda: replicas_of(member, "added") == 2, "the Deployment")
        member.patch(deployment_path("added"), {"metadata": {"annotations": {"theirs": "yes"}}})
        control.apply(deployment("added", 4))
        eventually(lambda: replicas_of(member, "added") == 4, "the scaled Deployment")
        assert (member.get(deployment_path("added")) or {})["metadata"]["annotations"]["theirs"] == "yes"


def test_autoscaled_workload_keeps_its_replicas(installation: Installation, tmp_path: Path) -> None:
    control, member = installation.control, installation.member
    with serving(tmp_path, join(control, "scaler", member.kubeconfig, tmp_path)):
        control.apply(deployment("scaler", 2), policy("scaler", on("scaler"), selector("scaler")))
        eventually(lambda: replicas_of(member, "scaler") == 2, "the Deployment")
        scaler = manifest(
            "autoscaling/v2",
            "HorizontalPodAutoscaler",
            "scaler",
            "default",
            spec={"scaleTargetRef": selector("scaler"), "minReplicas": 1, "maxReplicas": 9},
        )
        member.post("/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers", scaler)
        edits = itertools.count()

        def keeps_them() -> bool:
            """Scale as the autoscaler does; a later write of the agent must not undo it."""
            edit = f"edit-{next(edits)}"
            member.patch(deployment_path("scaler"), {"spec": {"replicas": 6}}, "kube-controller-manager")
            control.apply(deployment("scaler", 3, metadata={"labels": {"edited": edit}}))
            eventually(lambda: label_of(member, "scaler", "edited") == edit, "the edit")
            return replicas_of(member, "scaler") == 6

        eventually(keeps_them, "the autoscaler's replicas")
        control.apply(deployment("scaler", 4, metadata={"labels": {"edited": "last"}}))
        eventually(lambda: label_of(member, "scaler", "edited") == "last", "the last edit")
        assert replicas_of(member, "scaler") == 6


def test_unmanaged_object_is_kept_unless_the_policy_overwrites_it(
    installation: Installation, tmp_path: Path
) -> None:
    control, member = installation.control, installation.member
    theirs = deployment("conflict", 5)
    member.post("/apis/apps/v1/namespaces/default/deployments", theirs)
    before = member.get(deployment_path("conflict"))
    with serving(tmp_path, join(control, "conflict", member.kubeconfig, tmp_path)):
        control.apply(deployment("conflict", 2), policy("conflict", on("conflict"), selector("conflict")))
        eventually(
            lambda: (
                "already exists in the cluster"
                in control.member_status("default/conflict-deployment", "conflict").get("appliedMessage", "")
            ),
            "the fault",
        )
        assert control.member_status("default/conflict-deployment", "conflict")["applied"] is False
        assert member.get(deployment_path("conflict")) == before

        control.delete("deployment", "conflict")
        eventually(lambda: not control.ask("works", cluster="conflict").get("items"), "the withdrawal")
        assert member.get(deployment_path("conflict")) == before

        control.apply(
            deployment("conflict", 2),
            policy("conflict", on("conflict"), selector("conflict"), conflictResolution="Overwrite"),
        )
        eventually(lambda: replicas_of(member, "conflict") == 2, "the object that was taken over")
        eventually(
            lambda: control.member_status("default/conflict-deployment", "conflict").get("applied") is True,
            "the report",
        )


def test_changed_conflict_resolution_is_applied(installation: Installation, tmp_path: Path) -> None:
    control, member = installation.control, installation.member
    member.post("/apis/apps/v1/namespaces/default/deployments", deployment("resolved", 5))
    with serving(tmp_path, join(control, "resolved", member.kubeconfig, tmp_path)):
        control.apply(deployment("resolved", 2), policy("resolved", on("resolved"), selector("resolved")))
        eventually(
            lambda: (
                control.member_status("default/resolved-deployment", "resolved").get("applied") is False
                and control.member_status("default/resolved-deployment", "resolved").get("appliedMessage")
            ),
            "the fault",
        )
        control.apply(
            policy("resolved", on("resolved"), selector("resolved"), conflictResolution="Overwrite")
        )
        eventually(lambda: replicas_of(member, "resolved") == 2, "the object that was taken over")


def test_preserved_objects_stay_without_managed_marks(installation: Installation, tmp_path: Path) -> None:
    control, member = installation.control, installation.member
    with serving(tmp_path, join(control, "kept", member.kubeconfig, tmp_path)):
        control.apply(
            deployment("kept", 2, metadata={"labels": {"app": "kept"}}),
            policy("kept", on("kept"), selector("kept"), preserveResourcesOnDeletion=True),
        )
        eventually(lambda: replicas_of(member, "kept") == 2, "the Deployment")
        control.delete("deployment", "kept")
        eventually(
            lambda: (
                "karmada.io/managed" not in (member.get(deployment_path("kept")) or {})["metadata"]["labels"]
            ),
            "the object without marks",
        )
        assert "annotations" not in (member.get(deployment_path("kept")) or {})["metadata"]


def test_suspended_work_is_left_unchanged(installation: Installation, tmp_path: Path) -> None:
    control, member = installation.control, installation.member
    with serving(tmp_path, join(control, "held", member.kubeconfig, tmp_path)):
        control.apply(deployment("held", 2), policy("held", on("held"), selector("held")))
        eventually(lambda: replicas_of(member, "held") == 2, "the Deployment")
        control.apply(policy("held", on("held"), selector("held"), suspension={"dispatching": True}))
        eventually(
            lambda: (
                [work.get("suspended") for work in control.ask("works", cluster="held").get("items", [])]
                == [True]
            ),
            "the suspension",
        )
        control.apply(
            deployment("held", 5),
            deployment("held-not", 2),
            policy("held-not", on("held"), selector("held-not")),
        )
        eventually(lambda: replicas_of(member, "held-not") == 2, "a work behind the suspension")
        member.patch(deployment_path("held"), {"spec": {"replicas": 1}})
        member.patch(deployment_path("held-not"), {"spec": {"replicas": 1}})
        eventually(lambda: replicas_of(member, "held-not") == 2, "a drift behind the other one")
        assert replicas_of(member, "held") == 1

        control.apply(policy("held", on("held"), selector("held")))
        eventually(lambda: replicas_of(member, "held") == 5, "the work behind the suspension")


def test_override_policies_apply_to_the_cluster(installation: Installation, tmp_path: Path) -> None:
    control, member = installation.control, installation.member
    image = {"imageOverrider": [{"component": "Registry", "operator": "add", "value": "mirror.example"}]}
    override = override_policy("mirror", {"overriders": image}, resourceSelectors=[selector("mirrored")])

    def image_of() -> str:
        mirrored = member.get(deployment_path("mirrored")) or {
            "spec": {"template": {"spec": {"containers": [{}]}}}
        }
        return mirrored["spec"]["template"]["spec"]["containers"][0].get("image", "")

    with serving(tmp_path, join(control, "mirrored", member.kubeconfig, tmp_path)):
        control.apply(
            deployment("mirrored", 2, image="nginx:1.27"),
            policy("mirrored", on("mirrored"), selector("mirrored")),
        )
        eventually(lambda: image_of() == "nginx:1.27", "the Deployment")
        control.apply(override)
        eventually(lambda: image_of() == "mirror.example/nginx:1.27", "the overridden image")


def test_missing_namespace_is_created_and_missing_kind_is_reported(
    installation: Installation, tmp_path: Path
) -> None:
    control, member = installation.control, installation.member
    configuration = config_map("far", "far", a="b")
    far_policy = policy("far", on("far"), selector("far", CONFIG_MAP), namespace="far")
    namespace = manifest(*NAMESPACE, "far")
    with serving(tmp_path, join(control, "far", member.kubeconfig, tmp_path)):
        assert member.get("/api/v1/namespaces/far") is None
        control.apply(namespace, configuration, far_policy)
        eventually(lambda: member.get("/api/v1/namespaces/far/configmaps/far"), "the ConfigMap")
        eventually(
            lambda: control.member_status("far/far-configmap", "far").get("health") == "Healthy", "the report"
        )


def test_newly_defined_kind_is_served_at_once(installation: Installation, tmp_path: Path) -> None:
    control, member = installation.control, installation.member
    defined = definition("late", "Late")
    late = manifest("example.io/v1", "Late", "late", "default", spec={"size": 1})
    cluster_wide = cluster_policy("late", on("late"), selector_of(defined))
    namespaced = policy("late", on("late"), selector_of(late))
    path = "/apis/example.io/v1/namespaces/default/late/late"
    with serving(tmp_path, join(control, "late", member.kubeconfig, tmp_path)):
        eventually(lambda: control.condition("late").get("status") == "True", "a ready cluster")
        control.apply(defined, late, cluster_wide, namespaced)
        began_s = time.monotonic()
        eventually(lambda: member.kube.get(path).status_code == 200, "the custom resource")
        assert time.monotonic() - began_s < SOON_S


def test_leaving_cluster_is_emptied_and_its_agent_exits(installation: Installation, tmp_path: Path) -> None:
    control, member = installation.control, installation.member
    with serving(tmp_path, join(control, "left", member.kubeconfig, tmp_path)) as agent:
        control.apply(deployment("left", 2), policy("left", on("left"), selector("left")))
        eventually(lambda: replicas_of(member, "left") == 2, "the Deployment")
        assert "cluster/left removed" in command(control, "unjoin", "left")
        assert replicas_of(member, "left") is None
        assert control.get(CLUSTERS + "left") is None
        eventually(lambda: agent.process.poll() is not None, "the agent's end")
        assert agent.process.returncode == 0
    kept = Checkpoint(tmp_path / "agent.sqlite")
    assert kept.load("left") == (None, {})
    kept.close()


def test_unjoin_waits_for_a_dead_agent(installation: Installation, tmp_path: Path) -> None:
    control, member = installation.control, installation.member
    with serving(tmp_path, join(control, "killed", member.kubeconfig, tmp_path)) as agent:
        control.apply(deployment("killed", 2), policy("killed", on("killed"), selector("killed")))
        eventually(lambda: replicas_of(member, "killed") == 2, "the Deployment")
        agent.kill()
        output = command(control, "unjoin", "killed", "--wait", "1", code=1)
        assert "is not removed after 1 s: no report yet that all works are removed" in output
        shown = control.get(CLUSTERS + "killed")
        assert shown is not None
        assert shown["metadata"]["deletionTimestamp"]
        # The restarted agent has lost its state; the server sends the pending removals again.
        for path in tmp_path.glob("agent.sqlite*"):
            path.unlink()
        agent.launch()
        assert "cluster/killed removed" in command(control, "unjoin", "killed")
        assert replicas_of(member, "killed") is None
        # It ends by itself; a signal at that moment would end it in another way.
        assert agent.process.wait(PATIENCE_S) == 0


def test_cluster_without_agent_leaves_by_force(installation: Installation, tmp_path: Path) -> None:
    control, member = installation.control, installation.member
    with serving(tmp_path, join(control, "forced", member.kubeconfig, tmp_path)) as agent:
        control.apply(deployment("forced", 2), policy("forced", on("forced"), selector("forced")))
        eventually(lambda: replicas_of(member, "forced") == 2, "the Deployment")
        agent.kill()
        output = command(control, "unjoin", "forced", "--wait", "0", "--force")
        assert "cluster/forced removed by force" in output
        assert control.get(CLUSTERS + "forced") is None
        assert replicas_of(member, "forced") == 2
        # A returning agent learns that its cluster is no longer a member.
        agent.launch()
        eventually(lambda: replicas_of(member, "forced") is None, "the removal")
        eventually(lambda: agent.process.poll() is not None, "the agent's end")
