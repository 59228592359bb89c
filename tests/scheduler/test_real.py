"""The scheduler at a real Kubernetes API server with Karmada's kinds, with exactly the documented rights."""

import json
import subprocess
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest
import yaml

import engine.observer
import engine.scheduler
from engine.bench.karmada_api import binding, divided
from engine.bench.karmada_api import cluster as member
from tests.agent.real import Cluster, marks
from tests.builders.manifests import NAMESPACE, manifest
from tests.scheduler.api import Json
from tests.waiting import until

pytestmark = marks
LEASES: Final = "karmada-system"
ROUNDS: Final = 20
BINDINGS: Final = 10


def rules() -> list[Json]:
    """The rights that are documented for the scheduler."""
    files = (
        Path(engine.observer.__file__).with_name("cluster-role.yaml"),
        Path(engine.scheduler.__file__).with_name("role.yaml"),
    )
    return [rule for file in files for role in yaml.safe_load_all(file.read_text()) for rule in role["rules"]]


def definition(group: str, version: str, kind: str, scope: str) -> Json:
    """A CustomResourceDefinition that keeps all fields."""
    plural = f"{kind.lower()}s"
    served: Json = {
        "name": version,
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
    }
    spec: Json = {
        "group": group,
        "scope": scope,
        "names": {"plural": plural, "singular": kind.lower(), "kind": kind},
        "versions": [served],
    }
    annotations = {"api-approved.kubernetes.io": "unapproved, a test"}
    return manifest(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        f"{plural}.{group}",
        metadata={"annotations": annotations},
        spec=spec,
    )


class Karmada:
    """Karmada's API, as its administrator uses it."""

    def __init__(self, cluster: Cluster, kubeconfig: Path) -> None:
        self.cluster = cluster
        self.kubeconfig = kubeconfig

    def join(self, name: str) -> None:
        cluster = {"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", **member(name)}
        self.cluster.make(cluster)
        self.cluster.merge(
            "clusters.cluster.karmada.io", name, {"status": cluster["status"]}, "--subresource=status"
        )

    def bind(self, *names: str) -> None:
        """Create bindings that name the scheduler."""
        items: list[Json] = []
        for name in names:
            made = binding(name, 4, divided("member1", "member2"))
            made["metadata"]["namespace"] = self.cluster.namespace
            items.append({"apiVersion": "work.karmada.io/v1alpha2", "kind": "ResourceBinding", **made})
        self.cluster.make({"apiVersion": "v1", "kind": "List", "items": items})

    def bindings(self) -> list[Json]:
        return json.loads(self.cluster("get", "resourcebindings", "--output", "json") or '{"items": []}')[
            "items"
        ]

    def scheduled(self) -> list[str]:
        """The names of the bindings whose decision is written to its end."""
        return [
            binding["metadata"]["name"]
            for binding in self.bindings()
            if binding.get("status", {}).get("schedulerObservedGeneration")
            == binding["metadata"]["generation"]
        ]


@contextmanager
def running(karmada: Karmada, directory: Path) -> Generator[None]:
    """The command, killed at the end."""
    words = ["scheduler", "--kubeconfig", str(karmada.kubeconfig), "--data", str(directory)]
    with subprocess.Popen([sys.executable, "-m", "engine.cli", *words], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            while not process.stdout.readline().startswith(b"Ready"):
                assert process.poll() is None
            yield
        finally:
            process.kill()


@pytest.fixture
def karmada(cluster: Cluster, tmp_path: Path) -> Iterator[Karmada]:
    for kind, scope, group, version in (
        ("Cluster", "Cluster", "cluster.karmada.io", "v1alpha1"),
        ("ResourceBinding", "Namespaced", "work.karmada.io", "v1alpha2"),
        ("ClusterResourceBinding", "Cluster", "work.karmada.io", "v1alpha2"),
    ):
        made = definition(group, version, kind, scope)
        cluster.make(made)
        cluster("wait", "--for=condition=Established", f"customresourcedefinition/{made['metadata']['name']}")
    for namespace in (cluster.namespace, LEASES):
        cluster.make(manifest(*NAMESPACE, namespace))
    karmada = Karmada(cluster, cluster.account("scheduler", rules(), tmp_path / "account"))
    for name in ("member1", "member2"):
        karmada.join(name)
    yield karmada
    for group in ("clusters.cluster", "resourcebindings.work", "clusterresourcebindings.work"):
        cluster("delete", "customresourcedefinition", f"{group}.karmada.io", "--ignore-not-found")
    cluster("delete", "namespace", LEASES, "--wait=true")


def log(directory: Path, *words: str) -> str:
    command = [sys.executable, "-m", "engine.cli", "log", *words, "--data", str(directory), "--json"]
    return subprocess.run(command, capture_output=True, check=True, timeout=60).stdout.decode()


def test_bindings_are_decided_with_the_documented_rights(karmada: Karmada, tmp_path: Path) -> None:
    with running(karmada, tmp_path / "data"):
        karmada.bind("web")
        until(lambda: karmada.scheduled() == ["web-deployment"], lambda: "the decision")
        (binding,) = karmada.bindings()
        assert binding["spec"]["clusters"] == [
            {"name": name, "replicas": 2} for name in ("member1", "member2")
        ]
        assert binding["metadata"]["generation"] == 2
        (condition,) = binding["status"]["conditions"]
        assert (condition["type"], condition["status"], condition["reason"]) == (
            "Scheduled",
            "True",
            "Success",
        )
        until(lambda: "ScheduleBindingSucceed" in karmada.cluster("get", "events"), lambda: "the Event")
        lease = json.loads(karmada.cluster("get", "lease", "reballast", "-n", LEASES, "--output", "json"))
        assert lease["spec"]["holderIdentity"]


def test_killed_scheduler_continues_and_writes_nothing_twice(karmada: Karmada, tmp_path: Path) -> None:
    directory, names = tmp_path / "data", set[str]()
    for number in range(ROUNDS):
        with running(karmada, directory):
            new = [f"web{number}-{index}" for index in range(BINDINGS)]
            karmada.bind(*new)
            names |= {f"{name}-deployment" for name in new}
            limit = number * BINDINGS
            until(lambda limit=limit: len(karmada.scheduled()) > limit, lambda: "the first of the round")
    with running(karmada, directory):
        until(lambda: set(karmada.scheduled()) == names, lambda: "all decisions")
        lines = log(directory, "tail", "--topic", "observations", "--no-follow", "-n", "100000").splitlines()
    assert {binding["metadata"]["generation"] for binding in karmada.bindings()} == {2}
    made = [json.loads(line)["data"] for line in lines if "decision-made" in line]
    assert len({data["name"] for data in made}) == len(names)
