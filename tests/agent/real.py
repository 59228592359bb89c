"""A real cluster served by a test's agent: access to the cluster itself, and to its state in the control plane."""

import json
import os
import subprocess
from pathlib import Path
from typing import Final

import pytest
import yaml

from tests.agent.servers import Agent, Json, Server, eventually
from tests.builders import manifests
from tests.builders.manifests import (
    CLUSTER_ROLE,
    NAMESPACE,
    cluster_policy,
    manifest,
    on,
    pod_template,
    policy,
    selector_of,
)

VARIABLE: Final = "REBALLAST_TEST_KUBECONFIG"
PREFIX: Final = "reballast-test"
_IMAGE: Final = "nginx:1.27"

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

    def __call__(self, *words: str, document: Json | None = None) -> str:
        """Run kubectl and return its output; empty if it fails, with the message in ``errors``."""
        command = ["kubectl", "--kubeconfig", str(self.kubeconfig), "--namespace", self.namespace, *words]
        content = None if document is None else json.dumps(document).encode()
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
        assert self("create", "--filename", "-", document=value), self.errors

    def merge(self, kind: str, name: str, change: Json, *options: str) -> None:
        """Merge-patch an object with kubectl."""
        words = ("patch", kind, name, "--type", "merge", "--patch", json.dumps(change), *options)
        assert self(*words), self.errors

    def account(self, name: str, roles: list[Json], path: Path) -> Path:
        """Write a kubeconfig with the token of a service account that has only these rules; return its path."""
        self("create", "serviceaccount", name)
        named = f"{self.namespace}-{name}"
        self.make(manifest(*CLUSTER_ROLE, named, rules=roles))
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

    def send(
        self, *objects: Json, to: list[str] | None = None, placement: Json | None = None, **spec: object
    ) -> None:
        """Apply objects, and a policy that places them on the cluster, on those in ``to``, or by ``placement``."""
        own: list[Json] = []
        for document in objects:
            document["metadata"].setdefault("namespace", self.namespace)
            own.append(selector_of(document))
        placed = policy(
            objects[0]["metadata"]["name"],
            placement or on(*(to or [self.name])),
            *own,
            namespace=self.namespace,
            annotations=None,
            **spec,
        )
        self.control.apply(manifest(*NAMESPACE, self.namespace), *objects, placed)

    def send_whole(self, *objects: Json) -> None:
        """Apply cluster-scoped objects, and a policy that places them on the cluster."""
        selectors = map(selector_of, objects)
        placed = cluster_policy(objects[0]["metadata"]["name"], on(self.name), *selectors)
        self.control.apply(*objects, placed)

    def status(self, kind: str, name: str, cluster: str = "") -> Json:
        """Return the aggregated status of an object in the cluster, as the control plane reports it."""
        key = f"{self.namespace}/{name}-{kind.lower()}"
        return self.control.member_status(key, cluster or self.name)

    def wait_healthy(self, kind: str, name: str, **counts: int) -> None:
        """Wait until the control plane reports the object as healthy with these status fields."""

        def is_so() -> bool:
            status = self.status(kind, name)
            shown: Json = status.get("status") or {}
            return status.get("health") == "Healthy" and counts.items() <= shown.items()

        eventually(is_so, f"{kind} {name}, healthy, {counts}")


def pods(name: str, **spec: object) -> Json:
    """Return a pod template with its selector, as the spec of a workload."""
    template = pod_template(name, image=_IMAGE, requests={"cpu": "100m"}, **spec)
    return {"selector": {"matchLabels": {"app": name}}, "template": template}


def deployment(name: str, replicas: int = 2, cpu: str = "100m", **pod: object) -> Json:
    requests = {"cpu": cpu}
    return manifests.deployment(name, replicas, "", metadata=None, image=_IMAGE, requests=requests, **pod)
