"""``reballast plan`` on a real server: the prediction comes true, and nothing is written before."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.builders.manifests import definition
from tests.cli import clearing, servers
from tests.cli.servers import Shell

pytestmark = pytest.mark.slow

OBJECTS: Final = """
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: all, namespace: default}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}]
  placement:
    replicaScheduling:
      replicaSchedulingType: Divided
      replicaDivisionPreference: Weighted
      weightPreference: {dynamicWeight: AvailableReplicas}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default, labels: {app: web}}
spec:
  replicas: 9
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: nginx, resources: {requests: {cpu: 100m}}}]}
"""
CONFIG_MAP: Final = "{apiVersion: v1, kind: ConfigMap, metadata: {name: other}, data: {a: b}}"
FAILING: Final = """
apiVersion: policy.karmada.io/v1alpha1
kind: ClusterTaintPolicy
metadata: {name: failing}
spec:
  addOnConditions: [{conditionType: Ready, operator: In, statusValues: ["False", Unknown]}]
  taints: [{key: failing, effect: NoExecute}]
"""
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


@pytest.fixture
def shell(served: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Shell]:
    """The shell of a server without objects, whose members are equal and run nothing."""
    found = Shell(served, capsys)
    yield found
    clearing.cleared(found, tmp_path / "left.json")


def written(path: Path, text: str) -> str:
    path.write_text(text)
    return str(path)


def placed(shell: Shell, namespace: str = "default") -> dict[str, int]:
    """Return the clusters of the Deployment, with their replicas; none before it has a binding."""
    bindings: Any = json.loads(shell("get", "rb", "-n", namespace, "-o", "json"))["items"]
    none: Any = {}
    spec = next((each["spec"] for each in bindings if each["metadata"]["name"] == "web-deployment"), none)
    return {each["name"]: each["replicas"] for each in spec.get("clusters", [])}


def evicted(shell: Shell) -> bool:
    """Whether an eviction of the Deployment is in progress."""
    return "gracefulEvictionTasks" in shell("get", "rb", "web-deployment", "-o", "json")


def ready(shell: Shell) -> int:
    """Return the ready replicas of the Deployment, in all clusters."""
    return int(
        json.loads(shell("get", "deploy", "web", "-o", "json")).get("status", {}).get("readyReplicas", 0)
    )


def prediction(shell: Shell, *words: str) -> Any:  # noqa: ANN401  # JSON
    """Return the prediction of a change that has an effect."""
    return json.loads(shell("plan", *words, "--json", code=2))["prediction"]


def run(shell: Shell, objects: str) -> None:
    """Apply objects and wait until all replicas of the Deployment are ready."""
    shell("apply", "-f", objects)
    shell.until_true(lambda: sum(placed(shell).values()) == 9 and ready(shell) == 9)


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
    shell("plan", "scale", "deploy/web", code=2)
    assert "missing number of replicas" in shell.errors
    shell("scale", "deploy/web", "--replicas", "30")
    shell.until_true(lambda: bool(placed(shell) == change["after"]))


def test_prediction_is_shown_as_a_summary_with_bars(shell: Shell, tmp_path: Path) -> None:
    run(shell, written(tmp_path / "objects.yaml", OBJECTS))
    shown = shell("plan", "taint", "member1", "maintenance:NoExecute", code=2).splitlines()
    assert shown[0].startswith("1 of 1 workload to move, 3 replicas to stop, 3 to start; settled after ")
    assert shown[2] == "deployment/web in default: ready 9 → 9"
    assert shown[3] == "  member1  ░░░    3 → 0"
    assert any(line.startswith("member1   pods       3        0       3      11k") for line in shown)


def test_failure_of_a_cluster_is_planned(shell: Shell, tmp_path: Path) -> None:
    run(shell, written(tmp_path / "objects.yaml", OBJECTS))
    shell("plan", "fail", "member2", code=2)
    assert "note: no ClusterTaintPolicy evicts workloads from clusters that fail" in shell.errors
    shell("apply", "-f", written(tmp_path / "failing.yaml", FAILING))
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
    shell("plan", "rebalance", code=2)


def test_change_that_would_be_refused_is_refused(shell: Shell, tmp_path: Path) -> None:
    wrong = written(tmp_path / "wrong.yaml", OBJECTS.replace("replicas: 9", "replcas: 9"))
    shell("plan", "-f", wrong, code=1)
    assert "replcas" in shell.errors
    shell("plan", "taint", "member9", "maintenance:NoExecute", code=1)
    assert "member9" in shell.errors


def test_saved_plan_is_applied(shell: Shell, tmp_path: Path) -> None:
    objects, out = written(tmp_path / "objects.yaml", OBJECTS), tmp_path / "plan.json"
    shell("plan", "-f", objects, "-o", str(out), "--horizon", "5m", code=2)
    (change,) = json.loads(out.read_bytes())["prediction"]["changed"]
    shell("apply", "-f", written(tmp_path / "other.yaml", CONFIG_MAP))
    assert shell("apply", "--plan", str(out)).splitlines() == [
        "propagationpolicy.policy.karmada.io/all created",
        "deployment.apps/web created",
    ]
    shell.until_true(lambda: bool(placed(shell) == change["after"]))


def test_applied_plan_is_checked_and_named_in_the_timeline(shell: Shell, tmp_path: Path) -> None:
    run(shell, written(tmp_path / "objects.yaml", OBJECTS))
    out = tmp_path / "plan.json"
    shell("plan", "taint", "member1", "maintenance:NoExecute", "-o", str(out), code=2)
    identity = json.loads(out.read_bytes())["id"]
    shell("plan", "check", str(out), code=1)
    assert "no record was caused by this plan" in shell.errors
    shell("apply", "--plan", str(out))
    shell.until_true(lambda: placed(shell) == {"member2": 5, "member3": 4})
    # What others change later does not count.
    shell("scale", "deploy/web", "--replicas", "30")
    shell.until_true(lambda: sum(placed(shell).values()) == 30)
    shown = shell("plan", "check", str(out))
    assert "default/web-deployment" in shown
    assert shown.splitlines()[-1].startswith("1 of 1 workload is as predicted; placed within ")
    found = json.loads(shell("plan", "check", identity, "--json"))
    assert found["workloads"][0]["actual"] == {"member2": 5, "member3": 4}
    lines = shell("timeline", "deploy", "web").splitlines()
    planned = [line for line in lines if f"(planned by {identity})" in line]
    assert any("eviction-started" in line for line in planned)
    assert not any("template-applied" in line for line in planned)
    saved = json.loads(out.read_bytes())
    saved["prediction"]["changed"] = []
    unexpected = written(tmp_path / "unexpected.json", json.dumps(saved))
    assert "member2:5, member3:4   differs" in shell("plan", "check", unexpected, code=2)
    shell("plan", "check", "nothing", code=1)
    assert "no plan with this id on the server" in shell.errors


def test_plan_without_effect_is_checked(shell: Shell, tmp_path: Path) -> None:
    out = str(tmp_path / "plan.json")
    shell("plan", "taint", "member1", "maintenance:NoExecute", "-o", out)
    assert shell("apply", "--plan", out) == "cluster/member1 configured\n"
    assert shell("plan", "check", out) == "Nothing moved, as predicted.\n"


def test_plan_is_refused_only_after_edits_of_its_basis(shell: Shell, tmp_path: Path) -> None:
    out = str(tmp_path / "plan.json")
    shell("plan", "taint", "member1", "maintenance:NoExecute", "-o", out)
    shell("label", "cluster", "member1", "tier=gold")
    shell("taint", "member1", "other:NoSchedule")
    shell("apply", "--plan", out, code=1)
    assert "the plan no longer holds: member1 was edited since" in shell.errors
    shell("untaint", "member1", "other")
    assert shell("apply", "--plan", out) == "cluster/member1 configured\n"


def test_plan_that_no_longer_holds_is_refused(shell: Shell, tmp_path: Path) -> None:
    run(shell, written(tmp_path / "objects.yaml", OBJECTS))
    out = tmp_path / "plan.json"
    shell("plan", "scale", "deploy/web", "--replicas", "30", "-o", str(out), code=2)
    shell("taint", "member1", "maintenance:NoExecute")
    shell.until_true(lambda: "member1" not in placed(shell))
    shell("apply", "--plan", str(out), code=1)
    assert (
        "the plan no longer holds: default/web-deployment is in member2 (5), member3 (4) now" in shell.errors
    )
    assert "changed since the plan: cluster-tainted of member1 at number " in shell.errors
    assert sum(placed(shell).values()) == 9
    shell("plan", "scale", "deploy/web", "--replicas", "30", "-o", str(out), code=2)
    assert shell("apply", "--plan", str(out)) == "deployment.apps/web configured\n"
    shell.until_true(lambda: sum(placed(shell).values()) == 30)


def test_refusal_names_the_policy_that_changed_since(shell: Shell, tmp_path: Path) -> None:
    policy, workload = OBJECTS.split("---")
    run(shell, written(tmp_path / "objects.yaml", OBJECTS))
    out = tmp_path / "plan.json"
    new = workload.replace("name: web", "name: api")
    shell("plan", "-f", written(tmp_path / "new.yaml", new), "-o", str(out), code=2)
    narrowed = f"{policy.rstrip()}\n    clusterAffinity: {{clusterNames: [member2]}}\n"
    shell("apply", "-f", written(tmp_path / "policy.yaml", narrowed))
    shell.until_true(lambda: "member1" not in placed(shell))
    shell("apply", "--plan", str(out), code=1)
    assert "policy-applied of propagationpolicy:default/all at number " in shell.errors


def test_unusable_plans_are_refused(shell: Shell, tmp_path: Path) -> None:
    out = tmp_path / "plan.json"
    shell("apply", "--plan", str(out), code=1)
    out.write_text("{}")
    shell("apply", "--plan", str(out), code=1)
    assert "is not a plan" in shell.errors
    shell("apply", code=2)
    run(shell, written(tmp_path / "objects.yaml", OBJECTS))
    shell("plan", "fail", "member2", "-o", str(out), code=2)
    shell("apply", "--plan", str(out), code=1)
    assert "failing clusters can't be applied" in shell.errors
    shell("plan", "fail", "member2", "--horizon", "soon", code=2)
    assert "'soon' is not a duration" in shell.errors


def test_drill_shows_which_failures_are_absorbed(shell: Shell, tmp_path: Path) -> None:
    shell("apply", "-f", written(tmp_path / "failing.yaml", FAILING))
    run(shell, written(tmp_path / "objects.yaml", OBJECTS))
    lines = [line.split() for line in shell("drill", "--by", "cluster").splitlines()]
    assert [line[:6] for line in lines[1:]] == [
        ["cluster", f"member{number}", "1", "1", "1", "0"] for number in (1, 2, 3)
    ]

    large = OBJECTS.replace("cpu: 100m", 'cpu: "1000"')
    run(shell, written(tmp_path / "large.yaml", large))
    shell.until_true(lambda: set(placed(shell).values()) == {3})
    shown = shell("drill", "--by", "cluster", code=2)
    # The needs come last, since a narrow terminal cuts the end of a line.
    assert shown.splitlines()[2].endswith("3          never       cpu 3k")
    assert "cluster member2: default/web-deployment lacks 3 replicas" in shown
    assert "cluster member2: member1 needs cpu 3k more for 3 replicas" in shown
    (_, second, _) = json.loads(shell("drill", "--by", "cluster", "--json", code=2))
    assert second["outage"] == {"domain": "cluster", "name": "member2", "clusters": ["member2"]}
    assert (second["missing"], second["needed"], second["recoveredMs"]) == (3, {"cpu": "3k"}, None)
    assert second["remedies"] == [{"cluster": "member1", "replicas": 3, "capacity": {"cpu": "3k"}}]


def test_drill_fails_clusters_of_one_place_together(shell: Shell) -> None:
    found = json.loads(shell("drill", "--json"))
    outages = {each["outage"]["domain"]: each["outage"]["clusters"] for each in found}
    assert outages["cluster"] == ["member3"]
    assert len({tuple(each["outage"]["clusters"]) for each in found}) == len(found)


def test_failure_of_a_region_is_planned(shell: Shell, tmp_path: Path) -> None:
    run(shell, written(tmp_path / "objects.yaml", OBJECTS))
    outages = {
        each["outage"]["name"]: each["outage"] for each in json.loads(shell("drill", "--json", code=2))
    }
    (place,) = [each for each in outages.values() if len(each["clusters"]) == 2]
    planned = prediction(shell, "fail", f"--{place['domain']}", place["name"])
    assert planned["changed"] == prediction(shell, "fail", *place["clusters"])["changed"]
    shell("plan", "fail", "--zone", "nowhere", code=1)
    assert "no cluster is in zone nowhere" in shell.errors


def test_autoscaled_workload_is_an_assumption(shell: Shell, tmp_path: Path) -> None:
    run(shell, written(tmp_path / "objects.yaml", OBJECTS))
    shell("plan", "scale", "deploy/web", "12", code=2)
    assert "HorizontalPodAutoscaler" not in shell.errors
    shell("apply", "-f", written(tmp_path / "scaler.yaml", SCALER))
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


def test_server_drills_periodically_and_exports_the_results(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = tmp_path / "data"
    with servers.running(directory, "--drill-every", "1s"):
        shell = Shell(directory, capsys)
        run(shell, written(tmp_path / "objects.yaml", OBJECTS.replace("cpu: 100m", 'cpu: "1000"')))
        endpoint = json.loads((directory / "endpoint.json").read_text())

        def missing() -> dict[str, float]:
            headers = {"authorization": f"Bearer {endpoint['token']}"}
            text = httpx.get(f"{endpoint['url']}/metrics", headers=headers, trust_env=False).text
            return {
                sample.labels["name"]: sample.value
                for family in text_string_to_metric_families(text)
                for sample in family.samples
                if sample.name == "reballast_drill_missing_replicas" and sample.labels["domain"] == "cluster"
            }

        # Nothing evicts, so what is in a failing cluster has no place.
        shell.until_true(lambda: missing() == {"member1": 3, "member2": 3, "member3": 3})


def test_objects_are_planned_in_a_namespace_that_the_plan_creates(shell: Shell, tmp_path: Path) -> None:
    namespace = "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}"
    moved = OBJECTS.replace("namespace: default", "namespace: shop")
    objects, out = written(tmp_path / "objects.yaml", f"{namespace}\n---{moved}"), tmp_path / "plan.json"
    shell("plan", "-f", written(tmp_path / "without.yaml", moved), code=1)
    assert 'namespaces "shop" not found' in shell.errors
    (change,) = prediction(shell, "-f", objects, "-o", str(out))["changed"]
    assert (change["key"], sum(change["after"].values())) == ("shop/web-deployment", 9)
    assert shell("apply", "--plan", str(out)).splitlines()[0] == "namespace/shop created"
    shell.until_true(lambda: bool(placed(shell, "shop") == change["after"]))


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
