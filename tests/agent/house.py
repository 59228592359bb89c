"""A control plane, clusters and agents, each a process of its own.

A member cluster is a second control plane without members: it serves the Kubernetes API, and whoever tests plays its
controllers by writing what they would.
"""

import base64
import json
import re
import signal
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import httpx
import yaml

from engine.cli.client import Client
from engine.cli.kube_objects import KubeObjects
from engine.endpoint import verification
from tests import writes
from tests.faults.processes import STOP_SECONDS

PATIENCE_S: Final = 90.0
Json = dict[str, Any]


def eventually(holds: Callable[[], object], what: str = "it") -> None:
    """Asks again and again until it holds."""
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, f"{what} did not come to be"
        time.sleep(0.05)


class Server:
    """A server that runs on a directory."""

    def __init__(self, directory: Path, stack: ExitStack) -> None:
        self.directory = directory
        self.endpoint: Json = json.loads((directory / "endpoint.json").read_bytes())
        url, authority = self.endpoint["url"], self.endpoint["authority"]
        trust = verification(url, authority) if authority else True
        self.http = stack.enter_context(_client(url, self.endpoint["token"], verify=trust))
        config = yaml.safe_load((directory / "kubeconfig").read_text())
        self.tls = ssl.create_default_context(cadata=_authority(config))
        self.kube = stack.enter_context(
            _client(self.endpoint["kube_url"], self.endpoint["token"], verify=self.tls)
        )

    @property
    def kubeconfig(self) -> Path:
        """How its Kubernetes API is reached."""
        return self.directory / "kubeconfig"

    def apply(self, *objects: Json) -> None:
        """Applies objects as the command line does."""
        with Client(self.directory) as client:
            results = writes.apply(client, yaml.safe_dump_all(objects).encode())
        assert not any(each.get("problems") for each in results), results

    def delete(self, kind: str, name: str, namespace: str = "default") -> None:
        """Deletes an object as the command line does."""
        with Client(self.directory) as client:
            objects = KubeObjects(client)
            result = objects.delete(objects.target(kind, namespace, name))
        assert not result.get("problems"), result

    def ask(self, path: str, **query: str) -> Json:
        """The answer to a question; empty where there is none."""
        answer = self.http.get(f"/api/v1/{path}", params=query)
        return answer.json() if answer.status_code == 200 else {}

    def records(self, topic: str, key: str) -> list[Json]:
        """The records about a key in the server's own log."""
        found: list[Json] = []
        after = 0
        while True:
            page = self.ask("log", topic=topic, key=key, after=str(after), limit="1000")
            found += page.get("items", [])
            after = page.get("after", 0)
            if not after:
                return found

    def get(self, path: str) -> Json | None:
        """An object of the Kubernetes API."""
        answer = self.kube.get(path)
        if answer.status_code == 404:
            return None
        assert answer.status_code == 200, answer.text
        return answer.json()

    def post(self, path: str, value: Json) -> Json:
        """Makes an object, as somebody in the cluster would."""
        answer = self.kube.post(path, json=value)
        assert answer.status_code == 201, answer.text
        return answer.json()

    def patch(self, path: str, change: Json, manager: str = "somebody") -> Json:
        """Changes an object, as somebody in the cluster would."""
        answer = self.kube.patch(
            path,
            json=change,
            params={"fieldManager": manager},
            headers={"content-type": "application/merge-patch+json"},
        )
        assert answer.status_code == 200, answer.text
        return answer.json()

    def condition(self, cluster: str) -> Json:
        """The condition Ready of a cluster."""
        conditions = self.ask(f"clusters/{cluster}").get("status", {}).get("conditions", [])
        return conditions[0] if conditions else {}

    def member_status(self, key: str, cluster: str) -> Json:
        """What is shown of a workload in a cluster."""
        items: list[Json] = self.ask(f"bindings/{key}").get("status", {}).get("aggregatedStatus", [])
        found = [each for each in items if each["clusterName"] == cluster]
        return found[0] if found else {}


def up(directory: Path, stack: ExitStack, *options: str) -> Server:
    """``reballast up --no-members`` on a directory, until the stack ends."""
    directory.mkdir(exist_ok=True)
    stack.enter_context(
        _process(directory / "output", "up", "--no-members", "--data", str(directory), *options)
    )
    eventually((directory / "endpoint.json").exists, "a server that is ready")
    return Server(directory, stack)


class Agent:
    """``reballast agent`` for some configurations; it can be killed and started again."""

    def __init__(
        self, directory: Path, configurations: list[Path], grace: int = 40, *, is_watched: bool = False
    ) -> None:
        self._log = directory / "agent.log"
        self._words = [*map(str, configurations), "--grace", str(grace)]
        self._words += ["--checkpoint", str(directory / "agent.sqlite")]
        self._words += ["--metrics-port", "0"] if is_watched else []
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Starts it."""
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "engine.cli", "agent", *self._words], stdout=log, stderr=log
            )

    def watched_at(self) -> str:
        """Where it shows whether it is well; it says so when it listens."""
        eventually(lambda: b"watched" in self._log.read_bytes(), "an agent that is watched")
        found = re.search(r"watched\s.*?port\S*?=\S*?(\d{2,5})", self._log.read_text())
        assert found is not None
        return f"http://127.0.0.1:{found[1]}"

    def kill(self) -> None:
        """Ends it as ``kill -9`` does."""
        assert self.process is not None
        self.process.kill()
        self.process.wait(STOP_SECONDS)

    def stop(self) -> None:
        """Ends it in order."""
        assert self.process is not None
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            assert self.process.wait(STOP_SECONDS) == 0, self._log.read_text()


@contextmanager
def serving(
    directory: Path, *configurations: Path, grace: int = 40, is_watched: bool = False
) -> Generator[Agent]:
    """An agent for as long as the block lasts."""
    agent = Agent(directory, list(configurations), grace, is_watched=is_watched)
    agent.start()
    try:
        yield agent
        agent.stop()
    finally:
        if agent.process is not None and agent.process.poll() is None:
            agent.process.kill()
            agent.process.wait(STOP_SECONDS)


def join(control: Server, name: str, kubeconfig: Path, directory: Path) -> Path:
    """Lets a cluster join, by the command; gives its agent's configuration."""
    path = directory / f"{name}.agent.json"
    command(control, "join", name, "--kubeconfig", str(kubeconfig), "--to", str(path))
    return path


def command(control: Server, *words: str, code: int = 0) -> str:
    """Gives a command to a server; what it said, errors included. Fails where its exit code is another."""
    whole = [sys.executable, "-m", "engine.cli", *words, "--data", str(control.directory)]
    done = subprocess.run(whole, capture_output=True, check=False, timeout=PATIENCE_S, text=True)
    assert done.returncode == code, done.stderr
    return done.stdout + done.stderr


def deployment(name: str, replicas: int = 2, **labels: str) -> Json:
    """A Deployment."""
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default", "labels": {"app": name, **labels}},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "main", "image": "nginx:1.27"}]},
            },
        },
    }


def policy(name: str, clusters: list[str], kind: str = "Deployment", **spec: object) -> Json:
    """A policy that sends what has its name, of a kind, to clusters."""
    group = "v1" if kind in {"ConfigMap", "Service"} else "apps/v1"
    return {
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": "PropagationPolicy",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "resourceSelectors": [{"apiVersion": group, "kind": kind, "name": name}],
            "placement": {"clusterAffinity": {"clusterNames": clusters}},
            **spec,
        },
    }


def deployment_path(name: str) -> str:
    """Where a Deployment is."""
    return f"/apis/apps/v1/namespaces/default/deployments/{name}"


def replicas_of(server: Server, name: str) -> int | None:
    """The replicas that a Deployment in a cluster asks for."""
    found = server.get(deployment_path(name))
    return None if found is None else found["spec"]["replicas"]


def label_of(server: Server, name: str, label: str) -> str:
    """A label of a Deployment in a cluster."""
    return (server.get(deployment_path(name)) or {}).get("metadata", {}).get("labels", {}).get(label, "")


@contextmanager
def _process(said: Path, *words: str) -> Generator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "engine.cli", *words]
    with said.open("ab") as output, subprocess.Popen(command, stdout=output, stderr=output) as process:
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(STOP_SECONDS + 15)


def _client(url: str, token: str, *, verify: ssl.SSLContext | bool) -> httpx.Client:
    headers: Mapping[str, str] = {"authorization": f"Bearer {token}"}
    return httpx.Client(base_url=url, headers=headers, verify=verify, timeout=60.0, trust_env=False)


def _authority(config: Json) -> str:
    return base64.b64decode(config["clusters"][0]["cluster"]["certificate-authority-data"]).decode()
