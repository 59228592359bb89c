"""A control plane, member clusters and agents, each as its own process.

A member cluster is a second control plane without members: it serves the Kubernetes API, and the test writes
what a cluster's controllers would write.
"""

import base64
import contextlib
import io
import json
import re
import ssl
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import httpx
import yaml

from engine.cli import main
from engine.cli.client import Client
from engine.cli.kube_objects import KubeObjects
from engine.identity.endpoint import verification
from tests import waiting, writes
from tests.processes import Process

CLUSTERS: Final = "/apis/cluster.karmada.io/v1alpha1/clusters/"
PATIENCE_S: Final = 90.0
Json = dict[str, Any]


def eventually(holds: Callable[[], object], description: str = "the condition") -> None:
    waiting.until(holds, lambda: f"timed out waiting for {description}", PATIENCE_S)


class Server:
    """A running server, with clients for its query API and Kubernetes API."""

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
        """The kubeconfig of its Kubernetes API."""
        return self.directory / "kubeconfig"

    def apply(self, *objects: Json) -> None:
        """Apply objects as the command line does; fail if one is refused."""
        with Client(self.directory) as client:
            results = writes.apply(client, yaml.safe_dump_all(objects).encode())
        assert not any(result.problems for result in results), results

    def delete(self, kind: str, name: str, namespace: str = "default") -> None:
        """Delete an object as the command line does."""
        with Client(self.directory) as client:
            objects = KubeObjects(client)
            result = objects.delete(objects.target(kind, namespace, name))
        assert not result.problems, result

    def ask(self, path: str, **query: str) -> Json:
        """Return the response of a GET on the query API; empty unless its status is 200."""
        answer = self.http.get(f"/api/v1/{path}", params=query)
        return answer.json() if answer.status_code == 200 else {}

    def records(self, topic: str, key: str) -> list[Json]:
        """Return the records with a key from the server's log."""
        records: list[Json] = []
        after = 0
        while True:
            page = self.ask("log", topic=topic, key=key, after=str(after), limit="1000")
            records += page.get("items", [])
            after = page.get("after", 0)
            if not after:
                return records

    def get(self, path: str) -> Json | None:
        """Return an object of the Kubernetes API, or None if it does not exist."""
        answer = self.kube.get(path)
        if answer.status_code == 404:
            return None
        assert answer.status_code == 200, answer.text
        return answer.json()

    def post(self, path: str, value: Json) -> Json:
        """Create an object through the Kubernetes API."""
        answer = self.kube.post(path, json=value)
        assert answer.status_code == 201, answer.text
        return answer.json()

    def patch(self, path: str, change: Json, manager: str = "somebody") -> Json:
        """Merge-patch an object through the Kubernetes API."""
        answer = self.kube.patch(
            path,
            json=change,
            params={"fieldManager": manager},
            headers={"content-type": "application/merge-patch+json"},
        )
        assert answer.status_code == 200, answer.text
        return answer.json()

    def condition(self, cluster: str) -> Json:
        """Return the condition Ready of a cluster; empty if it has none."""
        conditions = self.ask(f"clusters/{cluster}").get("status", {}).get("conditions", [])
        return conditions[0] if conditions else {}

    def member_status(self, key: str, cluster: str) -> Json:
        """Return the aggregated status of a workload in a cluster; empty if there is none."""
        items: list[Json] = self.ask(f"bindings/{key}").get("status", {}).get("aggregatedStatus", [])
        statuses = [status for status in items if status["clusterName"] == cluster]
        return statuses[0] if statuses else {}


def up(directory: Path, stack: ExitStack, *options: str) -> Server:
    """Run ``reballast up --no-members`` on a directory until the stack closes."""
    directory.mkdir(exist_ok=True)
    process = Process(directory / "output", "up", "--no-members", "--data", str(directory), *options)
    process.launch()
    stack.callback(process.stop)
    process.wait_until(lambda: process.has_published(directory))
    return Server(directory, stack)


class Agent(Process):
    """A ``reballast agent`` process that can be killed and restarted."""

    def __init__(
        self, directory: Path, configurations: list[Path], grace: int = 40, *, is_watched: bool = False
    ) -> None:
        options = ["--grace", str(grace), "--checkpoint", str(directory / "agent.sqlite")]
        options += ["--metrics-port", "0"] if is_watched else []
        super().__init__(directory / "agent.log", "agent", *map(str, configurations), *options)

    def watched_at(self) -> str:
        """Return the address of its metrics endpoint; waits for the log line that names it."""
        eventually(lambda: "monitoring started" in self.output(), "an agent that is monitored")
        match = re.search(r"monitoring started\s.*?port\S*?=\S*?(\d{2,5})", self.output())
        assert match is not None
        return f"http://127.0.0.1:{match[1]}"


@contextmanager
def serving(
    directory: Path, *configurations: Path, grace: int = 40, is_watched: bool = False
) -> Generator[Agent]:
    """An agent for the duration of the block."""
    agent = Agent(directory, list(configurations), grace, is_watched=is_watched)
    agent.launch()
    try:
        yield agent
        assert agent.process.poll() is not None or agent.stop() == 0, agent.last_lines()
    finally:
        agent.kill()


def join(control: Server, name: str, kubeconfig: Path, directory: Path) -> Path:
    """Join a cluster with ``reballast join``; return its agent's configuration file.

    Clusters that have joined before get other ids, so that tests can join one member by several names.
    """
    for cluster in control.kube.get(CLUSTERS).json()["items"]:
        control.patch(CLUSTERS + cluster["metadata"]["name"], {"spec": {"id": cluster["metadata"]["name"]}})
    path = directory / f"{name}.agent.json"
    command(control, "join", name, "--kubeconfig", str(kubeconfig), "--to", str(path))
    return path


def command(control: Server, *words: str, code: int = 0) -> str:
    """Run a ``reballast`` command against a server and return stdout and stderr; fail on another exit code.

    It runs in this process, since a process of its own would take longer than the command.
    """
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        exit_code = main.run([*words, "--data", str(control.directory)])
    assert exit_code == code, printed.getvalue()
    return printed.getvalue()


def deployment_path(name: str) -> str:
    """API path of a Deployment."""
    return f"/apis/apps/v1/namespaces/default/deployments/{name}"


def replicas_of(server: Server, name: str) -> int | None:
    """Return the replicas of a Deployment in a cluster, or None if it does not exist."""
    deployment = server.get(deployment_path(name))
    return None if deployment is None else deployment["spec"]["replicas"]


def label_of(server: Server, name: str, label: str) -> str:
    """Return a label of a Deployment in a cluster, or an empty string."""
    return (server.get(deployment_path(name)) or {}).get("metadata", {}).get("labels", {}).get(label, "")


def _client(url: str, token: str, *, verify: ssl.SSLContext | bool) -> httpx.Client:
    headers: Mapping[str, str] = {"authorization": f"Bearer {token}"}
    return httpx.Client(base_url=url, headers=headers, verify=verify, timeout=60.0, trust_env=False)


def _authority(config: Json) -> str:
    return base64.b64decode(config["clusters"][0]["cluster"]["certificate-authority-data"]).decode()
