"""A real cluster served by a test's agent: access to the cluster itself, and to its state in the control plane."""

import json
import os
import subprocess
from pathlib import Path
from typing import Final

import pytest
import yaml

from tests.agent.house import Agent, Json, Server, eventually

VARIABLE: Final = "REBALLAST_TEST_KUBECONFIG"
PREFIX: Final = "reballast-test"
_POLICIES: Final = "policy.karmada.io/v1alpha1"

marks: Final = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        VARIABLE not in os.environ,
        reason=f"no real cluster: {VARIABLE} names no kubeconfig, so NOTHING is shown",
    ),
]
"""Marks of all tests that need a real cluster."""


class Cluster:
    """The real cluster through kubectl, in one of its namespaces."""

    def __init__(self, kubeconfig: Path, namespace: str) -> None:
        self.kubeconfig = kubeconfig
        self.namespace = namespace
        self.errors = ""

    def __call__(self, *words: str, given: Json | None = None) -> str:
        """Run kubectl and return its output; empty if it fails, with the message in ``errors``."""
        command = ["kubectl", "--kubeconfig", str(self.kubeconfig), "--namespace", self.namespace, *words]
        content = None if given is None else json.dumps(given).encode()
        ended = subprocess.run(command, input=content, capture_output=True, check=False, timeout=120)
        self.errors = ended.stderr.decode()
        return ended.stdout.decode()

    def get(self, kind: str, name: str) -> Json:
        """Return an object, empty if it does not exist."""
        return json.loads(self("get", kind, name, "--output", "json") or "{}")

    def field(self, kind: str, name: str, path: str) -> str:
        """Return the value at a JSON path (``.spec.replicas``) as text."""
        return self("get", kind, name, "--output", f"jsonpath={{{path}}}")

    def make(self, value: Json) -> None:
        """Create an object with kubectl."""
        assert self("create", "--filename", "-", given=value), self.errors

    def merge(self, kind: str, name: str, change: Json, *options: str) -> None:
        """Merge-patch an object with kubectl."""
        words = ("patch", kind, name, "--type", "merge", "--patch", json.dumps(change), *options)
        assert self(*words), self.errors

    def account(self, name: str, roles: list[Json], path: Path) -> Path:
        """Write a kubeconfig with the token of a service account that has only these rules; return its path."""
        self("create", "serviceaccount", name)
        named = f"{self.namespace}-{name}"
        head = "rbac.authorization.k8s.io/v1"
        self.make({"apiVersion": head, "kind": "ClusterRole", "metadata": {"name": named}, "rules": roles})
        bound = f"--serviceaccount={self.namespace}:{name}"
        self("create", "clusterrolebinding", named, f"--clusterrole={named}", bound)
        config = yaml.safe_load(self.kubeconfig.read_text())
        config["users"][0]["user"] = {"token": self("create", "token", name).strip()}
        path.write_text(yaml.safe_dump(config))
        return path


class Real:
    """The control plane, the cluster and its agent; ``name`` is the name of the cluster as a member."""

    def __init__(self, control: Server, cluster: Cluster, name: str, agent: Agent) -> None:
        self.control = control
        self.cluster = cluster
        self.name = name
        self.agent = agent

    @property
    def namespace(self) -> str:
        """The namespace of all objects of the test."""
        return self.cluster.namespace

    def send(self, *objects: Json, to: list[str] | None = None, **spec: object) -> None:
        """Apply objects, and a policy that places them on the cluster or on those in ``to``."""
        own: list[Json] = []
        for each in objects:
            each["metadata"].setdefault("namespace", self.namespace)
            own.append(selector(each))
        placement = {"clusterAffinity": {"clusterNames": to or [self.name]}}
        policy = {
            "apiVersion": _POLICIES,
            "kind": "PropagationPolicy",
            "metadata": {"name": objects[0]["metadata"]["name"], "namespace": self.namespace},
            "spec": {"resourceSelectors": own, "placement": placement, **spec},
        }
        namespace: Json = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}}
        self.control.apply(namespace, *objects, policy)

    def send_whole(self, *objects: Json) -> None:
        """Apply cluster-scoped objects, and a policy that places them on the cluster."""
        policy = {
            "apiVersion": _POLICIES,
            "kind": "ClusterPropagationPolicy",
            "metadata": {"name": objects[0]["metadata"]["name"]},
            "spec": {
                "resourceSelectors": [selector(each) for each in objects],
                "placement": {"clusterAffinity": {"clusterNames": [self.name]}},
            },
        }
        self.control.apply(*objects, policy)

    def status(self, kind: str, name: str, cluster: str = "") -> Json:
        """Return the aggregated status of an object in the cluster, as the control plane reports it."""
        key = f"{self.namespace}/{name}-{kind.lower()}"
        return self.control.member_status(key, cluster or self.name)

    def wait_healthy(self, kind: str, name: str, **counts: int) -> None:
        """Wait until the control plane reports the object as healthy with these status fields."""

        def is_so() -> bool:
            found = self.status(kind, name)
            shown: Json = found.get("status") or {}
            return found.get("health") == "Healthy" and counts.items() <= shown.items()

        eventually(is_so, f"{kind} {name}, healthy, {counts}")


def selector(value: Json) -> Json:
    """Return a resource selector for exactly this object."""
    return {"apiVersion": value["apiVersion"], "kind": value["kind"], "name": value["metadata"]["name"]}


def named(api_version: str, kind: str, name: str, **fields: object) -> Json:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **fields}


def config_map(name: str, **data: str) -> Json:
    return named("v1", "ConfigMap", name, data=data)


def pods(name: str, **spec: object) -> Json:
    """Return a pod template with its selector, as the spec of a workload."""
    labels = {"app": name}
    containers = [{"name": "main", "image": "nginx:1.27", "resources": {"requests": {"cpu": "100m"}}}]
    return {
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": containers, **spec}},
    }


def deployment(name: str, replicas: int = 2, cpu: str = "100m", **pod: object) -> Json:
    found = named("apps/v1", "Deployment", name, spec={"replicas": replicas, **pods(name, **pod)})
    requests = {"requests": {"cpu": cpu}}
    found["spec"]["template"]["spec"]["containers"][0]["resources"] = requests
    return found
