"""``reballast import``: a control plane is copied, and nothing moves."""

import asyncio
import json
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from engine.bench import karmada_api
from engine.bench.karmada_api import binding, cluster
from engine.cli.karmada import states
from tests.cli import servers
from tests.cli.servers import Shell
from tests.observer.commands import KUBECONFIG
from tests.scheduler.api import Api, Json, serving

pytestmark = pytest.mark.slow

WEIGHTS: Json = {
    "replicaSchedulingType": "Divided",
    "replicaDivisionPreference": "Weighted",
    "weightPreference": {"dynamicWeight": "AvailableReplicas"},
}
PLACEMENT: Json = {"clusterAffinity": {"clusterNames": ["east", "west"]}, "replicaScheduling": WEIGHTS}
PLACED = {"web": {"east": 5, "west": 1}, "api": {"west": 4}}
"""No scheduler would choose these."""


READY: Json = {
    "type": "Ready",
    "status": "True",
    "reason": "ClusterReady",
    "message": "cluster is healthy and ready to accept workloads",
    "lastTransitionTime": "2026-11-22T10:39:10Z",
}


@pytest.fixture
def shell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Generator[Shell]:
    directory = tmp_path / "data"
    with servers.running(directory):
        yield Shell(directory, capsys)


@contextmanager
def served(api: Api, kubeconfig: Path) -> Generator[None]:
    """Serve an API in a thread, and write its kubeconfig."""
    ready, ended = threading.Event(), threading.Event()

    async def serve() -> None:
        async with serving(api) as access:
            await asyncio.to_thread(kubeconfig.write_text, KUBECONFIG % access.server)
            ready.set()
            await asyncio.to_thread(ended.wait)

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    try:
        assert ready.wait(20)
        yield
    finally:
        ended.set()
        thread.join()


def deployment(name: str, replicas: int) -> Json:
    container: Json = {"name": "a", "image": "nginx", "resources": {"requests": {"cpu": "100m"}}}
    labels = {"app": name}
    template: Json = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    return {
        "metadata": {
            "name": name,
            "namespace": "default",
            "labels": {"app": name, "propagationpolicy.karmada.io/permanent-id": "of-another-control-plane"},
            "annotations": {
                "propagationpolicy.karmada.io/name": "all",
                "work.karmada.io/conflict-resolution": "overwrite",
            },
        },
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template},
        "status": {"replicas": replicas},
    }


def karmada() -> Api:
    """A control plane with two clusters, a policy, and workloads in unusual places."""
    api = Api()
    for name in ("east", "west"):
        made = cluster(name, tier="gold")
        made["status"]["conditions"] = [READY]
        api.put("clusters", made)
    api.put("namespaces", {"metadata": {"name": "karmada-system"}, "spec": {}})
    api.put("namespaces", {"metadata": {"name": "shop", "labels": {"team": "shop"}}, "spec": {}})
    policy: Json = {
        "metadata": {"name": "all", "namespace": "default"},
        "spec": {
            "resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment"}],
            "placement": PLACEMENT,
        },
    }
    api.put("propagationpolicies", policy)
    for name, clusters in PLACED.items():
        put_workload(api, name, clusters)
    return api


def put_workload(api: Api, name: str, clusters: dict[str, int]) -> None:
    """Create a Deployment, and its binding to these clusters."""
    replicas = sum(clusters.values())
    api.put("deployments", deployment(name, replicas))
    targets = [{"name": cluster, "replicas": count} for cluster, count in clusters.items()]
    api.put("resourcebindings", binding(name, replicas, PLACEMENT, clusters=targets))


def leaving() -> Json:
    """The metadata of a Deployment that is being deleted."""
    return {"name": "leaving", "namespace": "default", "deletionTimestamp": "2026-11-22T10:39:10Z"}


def placed(shell: Shell, name: str) -> dict[str, int]:
    binding = json.loads(shell("get", "rb", f"{name}-deployment", "-o", "json"))
    return {target["name"]: target["replicas"] for target in binding["spec"].get("clusters", ())}


def replicas(shell: Shell, name: str) -> int:
    """The replicas that a binding asks for."""
    return json.loads(shell("get", "rb", f"{name}-deployment", "-o", "json"))["spec"]["replicas"]


def only_here(imported: Json) -> str:
    """The note about the objects that Karmada does not have; the server's simulated clusters are among them."""
    (note,) = [note for note in imported["notes"] if note.startswith("only here, not in Karmada: ")]
    return note


def test_import_moves_no_workload(shell: Shell, tmp_path: Path) -> None:
    api, kubeconfig = karmada(), tmp_path / "karmada.config"
    with served(api, kubeconfig):
        planned = shell("import", "--kubeconfig", str(kubeconfig), "--dry-run")
        assert "Deployment" in planned
        shell("get", "deploy", "web", code=1)
        shown = shell("import", "--kubeconfig", str(kubeconfig))
        assert shown.splitlines()[-1] == "Bindings that are placed as before: 2 of 2."
        assert {name: placed(shell, name) for name in PLACED} == PLACED
        # The next import leaves unchanged objects alone, and copies new ones.
        end = shell("log", "tail", "--no-follow", "-n", "1", "--json")
        imported = json.loads(shell("import", "--kubeconfig", str(kubeconfig), "--json"))
        assert (imported["created"], imported["changed"], imported["refused"], imported["moved"]) == (
            {},
            {},
            [],
            [],
        )
        assert shell("log", "tail", "--no-follow", "-n", "1", "--json") == end
        put_workload(api, "new", {"east": 1, "west": 8})
        api.put("deployments", deployment("leaving", 1) | {"metadata": leaving()})
        imported = json.loads(shell("import", "--kubeconfig", str(kubeconfig), "--json"))
        assert (imported["created"], imported["changed"], imported["moved"]) == ({"Deployment": 1}, {}, [])
        assert placed(shell, "new") == {"east": 1, "west": 8}
        put_workload(api, "new", {"east": 6, "west": 4})
        imported = json.loads(shell("import", "--kubeconfig", str(kubeconfig), "--json"))
        assert (imported["created"], imported["changed"], imported["moved"]) == ({}, {"Deployment": 1}, [])
        assert placed(shell, "new") == {"east": 6, "west": 4}
        assert [note for note in imported["notes"] if "default/leaving" in note]
        assert "Deployment default/new" not in only_here(imported)
        for plural in ("deployments", "resourcebindings"):
            api.delete(plural, "default", "new" if plural == "deployments" else "new-deployment")
        imported = json.loads(shell("import", "--kubeconfig", str(kubeconfig), "--dry-run", "--json"))
        assert "Deployment default/new" in only_here(imported)
        assert placed(shell, "new") == {"east": 6, "west": 4}
    web = json.loads(shell("get", "deploy", "web", "-o", "json"))
    assert web["metadata"]["labels"]["app"] == "web"
    assert web["metadata"]["annotations"]["work.karmada.io/conflict-resolution"] == "overwrite"
    assert (
        web["metadata"]["labels"]["propagationpolicy.karmada.io/permanent-id"] != "of-another-control-plane"
    )
    east = json.loads(shell("get", "cluster", "east", "-o", "json"))
    assert east["status"]["resourceSummary"]["allocatable"]["cpu"] == "10"
    assert json.loads(shell("get", "ns", "shop", "-o", "json"))["metadata"]["labels"]["team"] == "shop"
    shell("timeline", "ns", "karmada-system", code=1)
    # The next decision is made as usual: placed replicas stay, and additional ones are divided.
    shell("scale", "deploy/web", "--replicas", "8")
    shell.until_true(lambda: sum(placed(shell, "web").values()) == 8)
    assert all(placed(shell, "web")[name] >= count for name, count in PLACED["web"].items())
    shell("log", "verify", "--views")


def test_import_reports_changed_placements(shell: Shell, tmp_path: Path) -> None:
    api, kubeconfig = karmada(), tmp_path / "karmada.config"
    api.put("resourcebindings", binding("gone", 2, PLACEMENT, clusters=[{"name": "east", "replicas": 2}]))
    with served(api, kubeconfig):
        imported = json.loads(shell("import", "--kubeconfig", str(kubeconfig), "--json", code=2))
    assert [(move["binding"], move["after"]) for move in imported["moved"]] == [
        ("default/gone-deployment", None)
    ]


def claim(api: Api) -> None:
    """Let the bindings name the policy that claims them."""
    marks = {"propagationpolicy.karmada.io/name": "all", "propagationpolicy.karmada.io/namespace": "default"}
    for claimed in api.of_kind("resourcebindings"):
        api.put("resourcebindings", {**claimed, "metadata": {**claimed["metadata"], "annotations": marks}})


def test_template_that_its_policy_does_not_select_stays_until_the_policy_changes(
    shell: Shell, tmp_path: Path
) -> None:
    api, kubeconfig = karmada(), tmp_path / "karmada.config"
    labelled = {"apiVersion": "apps/v1", "kind": "Deployment", "labelSelector": {"matchLabels": {"a": "b"}}}
    api.change("propagationpolicies", "default", "all", resourceSelectors=[labelled])
    claim(api)
    with served(api, kubeconfig):
        report = json.loads(shell("import", "--kubeconfig", str(kubeconfig), "--json"))
    assert report["moved"] == []
    shell("scale", "deploy/web", "--replicas", "8")
    shell("taint", "west", "maintenance:NoSchedule")
    assert {name: placed(shell, name) for name in PLACED} == PLACED


def test_older_placement_under_a_lazy_policy_stays_until_the_template_changes(
    shell: Shell, tmp_path: Path
) -> None:
    api, kubeconfig = karmada(), tmp_path / "karmada.config"
    newer = {**PLACEMENT, "clusterAffinity": {"clusterNames": ["west"]}}
    api.change("propagationpolicies", "default", "all", activationPreference="Lazy", placement=newer)
    claim(api)
    with served(api, kubeconfig):
        report = json.loads(shell("import", "--kubeconfig", str(kubeconfig), "--json"))
    assert report["moved"] == []
    shell("taint", "east", "maintenance:NoSchedule")
    shell("label", "cluster", "west", "disk=ssd")
    assert {name: placed(shell, name) for name in PLACED} == PLACED
    shell("scale", "deploy/web", "--replicas", "8")
    shell.until_true(lambda: placed(shell, "web") == {"west": 8})
    # Also an eviction follows the older placement, as in Karmada.
    shell("taint", "west", "maintenance:NoExecute")
    shell("untaint", "east", "maintenance:NoSchedule")
    shell.until_true(lambda: placed(shell, "api") == {"east": 4})


def test_template_that_waits_for_a_lazy_policy_is_not_placed(shell: Shell, tmp_path: Path) -> None:
    api, kubeconfig = karmada(), tmp_path / "karmada.config"
    lazy: Json = {
        "metadata": {"name": "late", "namespace": "default"},
        "spec": {
            "resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "idle"}],
            "placement": PLACEMENT,
            "activationPreference": "Lazy",
        },
    }
    api.put("propagationpolicies", lazy)
    idle = deployment("idle", 2)
    marks = {"propagationpolicy.karmada.io/name": "late", "propagationpolicy.karmada.io/namespace": "default"}
    api.put("deployments", {**idle, "metadata": {**idle["metadata"], "annotations": marks}})
    with served(api, kubeconfig):
        report = json.loads(shell("import", "--kubeconfig", str(kubeconfig), "--json"))
    assert (report["refused"], report["moved"]) == ([], [])
    described = shell("describe", "deploy", "idle")
    assert "Scheduled: no; the lazy policy late places it with its next write" in described
    shell("scale", "deploy/idle", "--replicas", "3")
    shell.until_true(lambda: "no; the lazy policy" not in shell("describe", "deploy", "idle"))
    assert sum(placed(shell, "idle").values()) == 3


def test_policies_are_taken_over_by_a_later_import(shell: Shell, tmp_path: Path) -> None:
    api, kubeconfig = karmada(), tmp_path / "karmada.config"
    api.change("propagationpolicies", "default", "all", schedulerName="team")
    with served(api, kubeconfig):
        for options, changed in ((), {}), (("--scheduler", "team"), {"PropagationPolicy": 1}):
            words = ("import", "--kubeconfig", str(kubeconfig), *options, "--json")
            imported = json.loads(shell(*words))
            assert (imported["changed"], imported["refused"], imported["moved"]) == (changed, [], [])
            assert json.loads(shell(*words))["changed"] == {}
        # An import without the option does not change policies that an earlier one assigned to Reballast.
        imported = json.loads(shell("import", "--kubeconfig", str(kubeconfig), "--json"))
    assert (imported["changed"], imported["refused"], imported["moved"]) == ({}, [], [])
    assert not [note for note in imported["notes"] if "not decided here" in note]
    assert {name: placed(shell, name) for name in PLACED} == PLACED


@pytest.mark.parametrize("taken_over", [False, True])
def test_policies_of_another_scheduler_are_reported_or_taken_over(
    shell: Shell, tmp_path: Path, taken_over: bool
) -> None:
    api, kubeconfig = karmada(), tmp_path / "karmada.config"
    api.change("propagationpolicies", "default", "all", schedulerName="team")
    options = ("--scheduler", "team") if taken_over else ()
    with served(api, kubeconfig):
        report = json.loads(shell("import", "--kubeconfig", str(kubeconfig), *options, "--json"))
    assert (report["refused"], report["moved"]) == ([], [])
    noted = [note for note in report["notes"] if "--scheduler team" in note and "default/all" in note]
    assert len(noted) == (not taken_over)
    shell("scale", "deploy/web", "--replicas", "8")
    shell.until_true(lambda: replicas(shell, "web") == 8)
    if taken_over:
        shell.until_true(lambda: sum(placed(shell, "web").values()) == 8)
    else:
        assert placed(shell, "web") == PLACED["web"]


async def test_objects_that_have_only_the_name_of_built_in_ones_are_copied() -> None:
    api = karmada()
    api.put("deployments", deployment("kubernetes", 1))
    async with serving(api) as access:
        state = await asyncio.to_thread(states.of_api, access)
    copied = {(value.kind, value.name) for value in state.objects}
    assert ("Deployment", "kubernetes") in copied
    assert ("Namespace", "karmada-system") not in copied


def test_kubeconfig_of_another_api_is_refused(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(karmada_api.KINDS, "propagationpolicies")
    kubeconfig = tmp_path / "host.config"
    with served(Api(), kubeconfig):
        shell("import", "--kubeconfig", str(kubeconfig), code=1)
    assert "serves no policies of Karmada" in shell.errors


def test_malformed_placement_is_refused(shell: Shell) -> None:
    made: Json = {"apiVersion": "apps/v1", "kind": "Deployment", **deployment("web", 2)}
    made["metadata"]["annotations"] = {"reballast.io/imported-placement": '{"clusters": ["east"]}'}
    printed = shell.apply(json.dumps(made), code=1)
    assert "reballast.io/imported-placement" in printed + shell.errors
