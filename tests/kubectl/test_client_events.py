"""Kubernetes Events that clients write, beside those that follow from the log."""

import json
from pathlib import Path

from events.json_values import Json
from tests.builders.manifests import manifest
from tests.kubectl.commands import Kubectl
from tests.kubectl.manifests import BOTH


def _core(name: str, namespace: str, **fields: object) -> str:
    deployment: Json = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "namespace": namespace}
    value = manifest("v1", "Event", name, namespace)
    return json.dumps({**value, "involvedObject": deployment, "reason": "Queued", "type": "Normal", **fields})


def _newer(name: str, namespace: str, **fields: object) -> str:
    deployment: Json = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "namespace": namespace}
    value = manifest("events.k8s.io/v1", "Event", name, namespace)
    details: Json = {"reason": "Admitted", "action": "Admit", "type": "Normal", "note": "admitted"}
    by: Json = {"reportingController": "queue.example.io", "reportingInstance": "queue-0"}
    time = "2026-11-25T12:00:00.000000Z"
    return json.dumps({**value, "regarding": deployment, **details, **by, "eventTime": time, **fields})


def test_event_of_a_client_is_listed_described_watched_patched_and_deleted(
    kubectl: Kubectl, tmp_path: Path
) -> None:
    kubectl("create", "deployment", "web", "--image=nginx")
    uid = kubectl("get", "deploy", "web", "-o", "jsonpath={.metadata.uid}")
    deployment: Json = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "name": "web",
        "namespace": kubectl.namespace,
    }
    with kubectl.watching(tmp_path, "events") as watched:
        event = _core(
            "web.1", kubectl.namespace, message="waits", count=1, involvedObject={**deployment, "uid": uid}
        )
        assert kubectl("create", "-f", "-", stdin=event) == "event/web.1 created\n"
        kubectl("create", "-f", "-", stdin=event, code=1)
        assert 'events "web.1" already exists' in kubectl.errors
        assert "waits" in kubectl("get", "events")
        assert "waits" in kubectl("describe", "deploy", "web")
        assert "waits" in kubectl("events", "--for", "deployment/web")
        shown = kubectl.json("events.events.k8s.io", "web.1")
        assert (shown["note"], shown["deprecatedCount"]) == ("waits", 1)
        kubectl("patch", "event", "web.1", "--type=merge", "-p", '{"count":7,"message":"waits on"}')
        assert (kubectl.json("event", "web.1")["count"], shown["metadata"]["uid"]) == (  # type: ignore[index]
            7,
            kubectl("get", "event", "web.1", "-o", "jsonpath={.metadata.uid}"),
        )
        kubectl.until_true(lambda: "waits on" in watched.read_text(), watched.read_text)
    assert kubectl("delete", "event", "web.1") == 'event "web.1" deleted\n'
    assert "waits" not in kubectl("get", "events")


def test_series_of_an_event_is_patched_as_recorders_do(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=_newer("web.2", kubectl.namespace))
    series = '{"series":{"count":3,"lastObservedTime":"2026-11-25T12:10:00.000000Z"}}'
    kubectl("patch", "events.events.k8s.io", "web.2", "--type=strategic", "-p", series)
    assert kubectl.json("event", "web.2")["series"]["count"] == 3  # type: ignore[index]


def test_events_that_kubernetes_refuses_are_refused(kubectl: Kubectl) -> None:
    kubectl(
        "create", "-f", "-", stdin=_core("a", kubectl.namespace, involvedObject={"namespace": "x"}), code=1
    )
    assert 'involvedObject.namespace: Invalid value: "x": does not match event.namespace' in kubectl.errors
    kubectl("create", "-f", "-", stdin=_newer("b", kubectl.namespace, action="", type="Odd"), code=1)
    assert "action: Required value" in kubectl.errors
    assert 'type: Unsupported value: "Odd"' in kubectl.errors
    kubectl("create", "-f", "-", stdin=_core("c", kubectl.namespace, message="x" * 20_000), code=1)
    assert "at most 16384 are allowed" in kubectl.errors
    kubectl("create", "-n", "nowhere", "-f", "-", stdin=_core("d", "nowhere"), code=1)
    assert 'namespaces "nowhere" not found' in kubectl.errors


def test_event_that_follows_from_the_log_is_not_changed(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=BOTH)
    names = ("get", "events", "-o", "name")
    kubectl.until_true(lambda: kubectl(*names) != "", lambda: "no Events")
    kubectl("annotate", kubectl(*names).split()[0], "a=b", code=1)
    assert "this Event is derived from the log" in kubectl.errors
