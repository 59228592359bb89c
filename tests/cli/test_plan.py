"""``reballast plan`` on a real server: the change has the predicted effect, and the plan itself writes nothing."""

import json
from pathlib import Path
from typing import Final

import pytest

from tests.builders.manifests import definition
from tests.cli.planned_objects import FAILING, OBJECTS, placed, prediction, ready, run, written
from tests.cli.servers import Shell

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("cleared")]

SCALER: Final = """
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: scalers, namespace: default}
spec:
  resourceSelectors: [{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler}]
  placement: {}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web, namespace: default}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  minReplicas: 2
  maxReplicas: 20
"""


def evicted(shell: Shell) -> bool:
    """Whether an eviction of the Deployment is in progress."""
    return "gracefulEvictionTasks" in shell("get", "rb", "web-deployment", "-o", "json")


def test_predicted_changes_equal_the_actual_ones(shell: Shell, tmp_path: Path) -> None:
    objects = written(tmp_path / "objects.yaml", OBJECTS)
    (change,) = prediction(shell, "-f", objects)["changed"]
    shell("get", "deploy", "web", code=1)
    run(shell, objects)
    assert placed(shell) == change["after"]
    shell("plan", "-f", objects)

    (change,) = prediction(shell, "taint", "member1", "maintenance:NoExecute")["changed"]
    assert (change["before"], change["readyMin"]) == (placed(shell), 9)
    shell("taint", "member1", "maintenance:NoExecute")
    # The eviction ends when its replacement is ready, and each of its steps would change the next plan.
    shell.until_true(
        lambda: bool(placed(shell) == change["after"]) and not evicted(shell) and ready(shell) == 9
    )

    (change,) = prediction(shell, "scale", "deploy/web", "30")["changed"]
    assert prediction(shell, "scale", "deploy", "web", "--replicas", "30")["changed"] == [change]
    shell("plan", "scale", "deploy/web", code=1)
    assert "missing number of replicas" in shell.errors
    out = shell.directory / "scaled.json"
    shown = shell("plan", "scale", "deploy/web", "30", "-o", str(out), code=2)
    assert shown.startswith("1 of 1 workload to change, 0 replicas to stop, ")
    assert shell.errors.startswith(f"Plan written to {out}.\n")
    (removed,) = prediction(shell, "delete", "deploy/web")["changed"]
    assert (removed["before"], removed["after"]) == (placed(shell), {})
    shell("plan", "cordon", "member1")
    shell("scale", "deploy/web", "--replicas", "30")
    shell.until_true(lambda: bool(placed(shell) == change["after"]))


def test_prediction_is_shown_as_a_summary_with_bars(shell: Shell, tmp_path: Path) -> None:
    run(shell, written(tmp_path / "objects.yaml", OBJECTS))
    shown = shell("plan", "taint", "member1", "maintenance:NoExecute", code=2).splitlines()
    assert shown[0].startswith("1 of 1 workload to move, 3 replicas to stop, 3 to start; stable after ")
    assert shown[2] == "deployment/web in default: ready 9 → 9"
    assert shown[3] == "  member1  ░░░    3 → 0"
    assert any(line.startswith("member1   pods       3        0       3      11k") for line in shown)


def test_planned_taint_takes_the_words_of_taint(shell: Shell, tmp_path: Path) -> None:
    run(shell, written(tmp_path / "objects.yaml", OBJECTS))
    (change,) = prediction(shell, "taint", "member1", "maintenance:NoExecute")["changed"]
    for words in (("cluster/member1",), ("clusters", "member1")):
        assert prediction(shell, "taint", *words, "maintenance:NoExecute")["changed"] == [change]


def test_failure_of_a_cluster_is_planned(shell: Shell, tmp_path: Path) -> None:
    run(shell, written(tmp_path / "objects.yaml", OBJECTS))
    shell("plan", "fail", "member2", code=2)
    assert "note: no ClusterTaintPolicy evicts workloads from clusters that fail" in shell.errors
    shell.apply(FAILING)
    (change,) = prediction(shell, "fail", "member2")["changed"]
    assert "member2" not in change["after"]
    assert (change["readyBefore"], change["readyMin"], change["readyAfter"]) == (9, 6, 9)
    number = json.loads(shell("get", "rb", "web-deployment", "-o", "json"))["metadata"]["resourceVersion"]
    shell("scale", "deploy/web", "--replicas", "30")
    shell.until_true(lambda: sum(placed(shell).values()) == 30)
    (change,) = prediction(shell, "fail", "member2", "--as-of", number)["changed"]
    assert change["readyBefore"] == 9
    # The ClusterTaintPolicy came later.
    shell("drill", "--as-of", number, code=2)
    assert "no ClusterTaintPolicy evicts" in shell.errors
    shell("plan", "fail", "member9", code=1)
    assert "member9" in shell.errors


def test_rebalance_is_planned_for_the_chosen_workloads(shell: Shell, tmp_path: Path) -> None:
    shell("cordon", "member1")
    run(shell, written(tmp_path / "objects.yaml", OBJECTS))
    shell("uncordon", "member1")
    (change,) = prediction(shell, "rebalance", "-l", "app=web")["changed"]
    assert "member1" not in change["before"]
    assert change["after"]["member1"] > 0
    shell("plan", "rebalance", "-l", "app=other", code=1)
    assert "no workload matches" in shell.errors
    shell("plan", "rebalance", code=1)


def test_change_that_would_be_refused_is_refused(shell: Shell, tmp_path: Path) -> None:
    wrong = written(tmp_path / "wrong.yaml", OBJECTS.replace("replicas: 9", "replcas: 9"))
    shell("plan", "-f", wrong, code=1)
    assert "replcas" in shell.errors
    shell("plan", "taint", "member9", "maintenance:NoExecute", code=1)
    assert "member9" in shell.errors


def test_failure_of_a_region_is_planned(shell: Shell, tmp_path: Path) -> None:
    run(shell, written(tmp_path / "objects.yaml", OBJECTS))
    outages = {
        outcome["outage"]["name"]: outcome["outage"]
        for outcome in json.loads(shell("drill", "--json", code=2))
    }
    (region,) = [outage for outage in outages.values() if len(outage["clusters"]) == 2]
    planned = prediction(shell, "fail", f"--{region['domain']}", region["name"])
    assert planned["changed"] == prediction(shell, "fail", *region["clusters"])["changed"]
    shell("plan", "fail", "--zone", "nowhere", code=1)
    assert "no cluster is in zone nowhere" in shell.errors


def test_autoscaled_workload_is_an_assumption(shell: Shell, tmp_path: Path) -> None:
    run(shell, written(tmp_path / "objects.yaml", OBJECTS))
    shell("plan", "scale", "deploy/web", "12", code=2)
    assert "HorizontalPodAutoscaler" not in shell.errors
    shell.apply(SCALER)
    shell.until_true(lambda: "web-horizontalpodautoscaler" in shell("get", "rb"))
    shell("plan", "scale", "deploy/web", "12", code=2)
    assert "a HorizontalPodAutoscaler scales default/web-deployment" in shell.errors


def test_workload_of_an_autoscaler_that_the_plan_creates_is_an_assumption(
    shell: Shell, tmp_path: Path
) -> None:
    policy, scaler = SCALER.split("---")
    propagated = written(tmp_path / "propagated.yaml", f"{OBJECTS}---{scaler}---{policy}")
    assumed = " ".join(prediction(shell, "-f", propagated)["assumptions"])
    assert "a HorizontalPodAutoscaler scales default/web-deployment" in assumed
    # An autoscaler that no policy propagates scales nothing in members.
    alone = written(tmp_path / "alone.yaml", f"{OBJECTS}---{scaler}")
    assert "HorizontalPodAutoscaler" not in " ".join(prediction(shell, "-f", alone)["assumptions"])


def test_objects_are_planned_in_a_namespace_that_the_plan_creates(shell: Shell, tmp_path: Path) -> None:
    namespace = "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}"
    moved = OBJECTS.replace("namespace: default", "namespace: shop")
    objects, out = written(tmp_path / "objects.yaml", f"{namespace}\n---{moved}"), tmp_path / "plan.json"
    shell("plan", "-f", written(tmp_path / "without.yaml", moved), code=1)
    assert 'the namespace "shop" does not exist' in shell.errors
    (change,) = prediction(shell, "-f", objects, "-o", str(out))["changed"]
    assert (change["key"], sum(change["after"].values())) == ("shop/web-deployment", 9)
    assert shell("apply", "--plan", str(out)).splitlines()[0] == "namespace/shop created"
    shell.until_true(lambda: bool(placed(shell, "shop") == change["after"]))


def test_plan_without_changes_replaces_the_one_in_its_file(shell: Shell, tmp_path: Path) -> None:
    run(shell, written(tmp_path / "objects.yaml", OBJECTS))
    taint, out = ("taint", "member1", "maintenance:NoExecute"), str(tmp_path / "plan.json")
    shell("plan", *taint, "-o", out, code=2)
    shell("taint", "cluster", *taint[1:])
    unchanged = "Nothing changes: the objects already are as requested.\n"
    assert shell("plan", *taint, "-o", out) == unchanged
    shell("taint", "cluster", "member1", "maintenance-")
    assert shell("apply", "--plan", out) == unchanged
    assert "maintenance" not in shell("get", "cluster", "member1", "-o", "yaml")
    shell("plan", "check", out, code=1)
    assert shell.errors.startswith(f"error: {out} changes nothing\n")


def test_objects_of_a_file_build_on_the_ones_before(shell: Shell, tmp_path: Path) -> None:
    policy, workload = OBJECTS.split("---")
    crd = json.dumps(definition("gizmos", "Gizmo"))
    gizmo = "{apiVersion: example.io/v1, kind: Gizmo, metadata: {name: one}, spec: {colour: red}}"
    labelled = workload.replace("labels: {app: web}}\nspec", "labels: {app: web, tier: front}}\nspec")
    larger = workload.replace("replicas: 9", "replicas: 12")
    documents = [workload, labelled, larger, policy, crd, gizmo]
    objects, out = written(tmp_path / "objects.yaml", "\n---\n".join(documents)), tmp_path / "plan.json"
    (change,) = prediction(shell, "-f", objects, "-o", str(out))["changed"]
    assert sum(change["after"].values()) == 12
    assert len(shell("apply", "--plan", str(out)).splitlines()) == 6
    shell.until_true(lambda: bool(placed(shell) == change["after"]))
    assert "tier" not in json.loads(shell("get", "deploy", "web", "-o", "json"))["metadata"]["labels"]
    assert "one" in shell("get", "Gizmo")
    assert shell("plan", "check", str(out)).splitlines()[-1].startswith("1 of 1 workload is as predicted")


def test_plan_of_a_kind_without_replicas_shows_its_clusters(shell: Shell, tmp_path: Path) -> None:
    policy = OBJECTS.partition("---")[0].replace("apps/v1, kind: Deployment", "v1, kind: ConfigMap")
    config = "{apiVersion: v1, kind: ConfigMap, metadata: {name: plain}}"
    shell("apply", "-f", written(tmp_path / "objects.yaml", f"{policy}\n---\n{config}"))
    shell.until_true(lambda: "member3" in shell("get", "cm", "plain"))
    shown = shell("plan", "taint", "member1", "maintenance:NoExecute", code=2).splitlines()
    assert shown[2:6] == [
        "configmap/plain in default",
        "  member1  gone",
        "  member2  stays",
        "  member3  stays",
    ]


def test_plan_of_refused_objects_reports_no_write(shell: Shell, tmp_path: Path) -> None:
    invalid = OBJECTS.replace("replicas: 9", "replicas: many")
    assert shell("plan", "-f", written(tmp_path / "objects.yaml", invalid), code=1) == ""
    assert "deployment.apps/web: spec.replicas: is of type string, must be of type int32" in shell.errors


def test_change_is_planned_as_of_an_earlier_time(shell: Shell, tmp_path: Path) -> None:
    run(shell, written(tmp_path / "objects.yaml", OBJECTS))
    number = str(json.loads(shell("timeline", "deploy", "web", "--json"))[-1]["number"])
    shell("scale", "deploy/web", "--replicas", "3")
    shell("taint", "member3", "maintenance:NoExecute")
    shell.until_true(lambda: sum(placed(shell).values()) == 3 and "member3" not in placed(shell))
    (change,) = prediction(shell, "scale", "deploy/web", "30", "--as-of", number)["changed"]
    assert (sum(change["before"].values()), sum(change["after"].values())) == (9, 30)
    (change,) = prediction(shell, "taint", "member1", "maintenance:NoExecute", "--as-of", number)["changed"]
    assert ("member1" in change["before"], "member1" in change["after"]) == (True, False)
    assert sum(change["after"].values()) == 9


def test_files_are_planned_from_the_objects_of_an_earlier_time(shell: Shell, tmp_path: Path) -> None:
    objects = written(tmp_path / "objects.yaml", OBJECTS)
    before = str(json.loads(shell("log", "tail", "-n", "1", "--no-follow", "--json"))["number"])
    run(shell, written(tmp_path / "small.yaml", OBJECTS.replace("replicas: 9", "replicas: 3")), replicas=3)
    small = str(json.loads(shell("timeline", "deploy", "web", "--json"))[-1]["number"])
    shell("taint", "member3", "maintenance:NoExecute")
    run(shell, objects)

    def totals(*words: str, as_of: str) -> tuple[int, int]:
        (change,) = prediction(shell, *words, "--as-of", as_of)["changed"]
        return sum(change["before"].values()), sum(change["after"].values())

    assert totals("-f", objects, as_of=before) == (0, 9)
    assert totals("-f", objects, as_of=small) == (3, 9)
    assert totals("taint", "member3", "maintenance:NoExecute", as_of=small) == (3, 3)
    shell("plan", "rebalance", "--all", "--as-of", before, code=1)
    assert "no workload matches" in shell.errors
