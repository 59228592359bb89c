"""Objects that no user writes: pods, works, Events, and the namespaces of the control plane."""

import json

from tests.cli.deployments import applied
from tests.cli.servers import Shell, without_ages


def test_pods_are_listed_by_label(shell: Shell) -> None:
    applied(shell, "seven")
    shell.until(
        ["NAME CLUSTER READY UP-TO-DATE AVAILABLE ADOPTION", "seven member1 2/2 2 2 Y"],
        "get",
        "deploy",
        "seven",
    )

    heading, *rows = without_ages(shell("get", "pod", "-l", "app=seven"))

    assert heading == "NAME CLUSTER READY STATUS RESTARTS"
    assert [row.split()[1:] for row in rows] == [["member1", "1/1", "Running", "0"]] * 2
    assert all(row.startswith("seven-") for row in rows)
    listed = json.loads(shell("get", "pods", "-l", "app=seven", "-A", "-o", "json"))
    assert [item["kind"] for item in listed["items"]] == ["Pod", "Pod"]
    second, first = (item["metadata"]["name"] for item in listed["items"])
    assert shell("get", "pods", first, second, "-o", "name") == f"pod/{first}\npod/{second}\n"
    shell("get", "pods", first, "absent", code=1)
    assert (
        shell.errors
        == f'error: pods "absent" not found\n  see: reballast get pods -A --data {shell.directory}\n'
    )


def test_pod_is_described_with_its_events(shell: Shell) -> None:
    applied(shell, "eight")
    shell.until_true(lambda: "Running" in shell("get", "pods", "-l", "app=eight"))
    name = shell("get", "pods", "-l", "app=eight", "--no-headers").split()[0]
    shown = shell("describe", "pod", name)
    assert "nodeName: member1-" in shown
    assert "\nCluster: member1\n" in shown
    assert f"Normal Scheduled pod/{name}" in " ".join(shown.split())
    described = json.loads(shell("describe", "po", name, "--json"))
    assert (described["object"]["kind"], described["events"][0]["kind"]) == ("Pod", "Event")
    shell("describe", "pod", name, "--as-of", "1s", code=1)
    shell("describe", "pod", "absent", code=1)
    assert (
        shell.errors
        == f'error: pods "absent" not found\n  see: reballast get pods -A --data {shell.directory}\n'
    )


def test_works_are_shown_by_the_names_of_their_objects(shell: Shell) -> None:
    applied(shell, "worked")
    shell.until_true(lambda: "worked-deployment" in shell("get", "works"))
    work = json.loads(shell("get", "works", "worked-deployment", "-o", "json"))
    assert work["spec"]["workload"]["manifests"][0]["spec"]["replicas"] == 2
    name = work["metadata"]["name"]
    row = f"{name} member1 default/worked-deployment Deployment 2 N"
    for namespace in ("default", "karmada-es-member1"):
        assert row in without_ages(shell("get", "works", "-n", namespace))
    assert "worked" not in shell("get", "works", "-n", "kube-system")
    assert shell("get", "works", name, "-o", "name") == f"work.work.karmada.io/{name}\n"
    assert "namespace: karmada-es-member1" in shell("describe", "work", name)
    shell("get", "works", "-o", "json", "--as-of", "1s", code=1)
    assert shell.errors.startswith("error: --as-of: the log has no Work objects\n")


def test_objects_that_the_kubernetes_api_derives_are_listed(shell: Shell) -> None:
    heading, *rows = without_ages(shell("get", "ns"))
    assert heading == "NAME STATUS"
    assert {"default Active", "kube-system Active", "karmada-es-member1 Active"} <= set(rows)
    assert "phase: Active" in shell("describe", "ns", "default")
    shell("get", "ns", "absent", code=1)
    applied(shell, "eventful")
    row = "ApplyPolicySucceed deployment/eventful"
    shell.until_true(lambda: row in " ".join(shell("get", "events").split()))
    (event, *_) = json.loads(shell("get", "events", "-o", "json"))["items"]
    assert (event["apiVersion"], event["kind"]) == ("events.k8s.io/v1", "Event")
    shell("get", "events", "--as-of", "1m", code=1)
    assert shell.errors.startswith("error: --as-of: the log has no Events\n")
