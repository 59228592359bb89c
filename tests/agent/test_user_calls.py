"""The API of a real member through the control plane: requests of users go through the agent's connection."""

import json
import secrets
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
from msgspec import Struct

from tests.agent.conftest import Installation
from tests.agent.servers import Server, deployment_path, eventually, join, serving

pytestmark = pytest.mark.slow

MAPS = "/api/v1/namespaces/default/configmaps"


class Proxied(Struct):
    """A member that an agent serves, and its name in the control plane."""

    control: Server
    member: Server
    name: str

    @property
    def path(self) -> str:
        return f"/apis/cluster.karmada.io/v1alpha1/clusters/{self.name}/proxy"

    def get(self, path: str) -> httpx.Response:
        return self.control.kube.get(self.path + path)


@pytest.fixture(scope="module")
def proxied(installation: Installation, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxied]:
    directory = tmp_path_factory.mktemp("calls")
    name = f"calls-{secrets.token_hex(3)}"
    with serving(directory, join(installation.control, name, installation.member.kubeconfig, directory)):
        member_proxy = Proxied(installation.control, installation.member, name)
        eventually(lambda: member_proxy.get("/version").status_code == 200, "an agent that is connected")
        yield member_proxy


def config_map(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "1"}}


def test_objects_of_the_member_are_written_and_read(proxied: Proxied) -> None:
    created = proxied.control.kube.post(proxied.path + MAPS, json=config_map("through"))
    assert created.status_code == 201, created.text
    assert (proxied.member.get(f"{MAPS}/through") or {})["data"] == {"a": "1"}
    patched = proxied.control.kube.patch(
        f"{proxied.path}{MAPS}/through",
        json={"data": {"a": "2"}},
        headers={"content-type": "application/merge-patch+json"},
    )
    assert patched.json()["data"] == {"a": "2"}
    listed = proxied.control.kube.get(proxied.path + MAPS, params={"fieldSelector": "metadata.name=through"})
    assert [config_map["metadata"]["name"] for config_map in listed.json()["items"]] == ["through"]
    assert proxied.control.kube.delete(f"{proxied.path}{MAPS}/through").status_code == 200
    assert proxied.member.get(f"{MAPS}/through") is None


def test_refusals_of_the_member_are_passed_on(proxied: Proxied) -> None:
    missing = proxied.get(deployment_path("missing"))
    assert missing.status_code == 404
    assert missing.json()["reason"] == "NotFound"
    table = proxied.control.kube.get(
        proxied.path + MAPS, headers={"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    )
    assert table.json()["kind"] == "Table"


def test_watch_of_the_member_is_streamed_until_the_client_leaves(proxied: Proxied) -> None:
    def write() -> None:
        proxied.member.post(MAPS, config_map("watched"))

    with proxied.control.kube.stream(
        "GET", proxied.path + MAPS, params={"watch": "true", "fieldSelector": "metadata.name=watched"}
    ) as response:
        assert response.status_code == 200
        timer = threading.Timer(0.5, write)
        timer.start()
        line = next(response.iter_lines())
        timer.join()
    event = json.loads(line)
    assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", "watched")
    assert proxied.get("/version").status_code == 200


def test_user_needs_the_rights_in_the_control_plane(proxied: Proxied) -> None:
    account = f"reader-{secrets.token_hex(3)}"
    accounts = "/api/v1/namespaces/default/serviceaccounts"
    proxied.control.post(
        accounts, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": account}}
    )
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": account},
        "rules": [
            {"apiGroups": ["cluster.karmada.io"], "resources": ["clusters/proxy"], "verbs": ["*"]},
            {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]},
        ],
    }
    roles = "/apis/rbac.authorization.k8s.io/v1"
    proxied.control.post(f"{roles}/clusterroles", role)
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": account},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": account},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": "default"}],
    }
    proxied.control.post(f"{roles}/clusterrolebindings", binding)
    request: dict[str, Any] = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    token = proxied.control.post(f"{accounts}/{account}/token", request)["status"]["token"]
    headers = {"authorization": f"Bearer {token}"}
    kube = proxied.control.kube
    assert kube.get(proxied.path + MAPS, headers=headers).status_code == 200
    refused = kube.get(f"{proxied.path}/api/v1/namespaces/default/secrets", headers=headers)
    assert (refused.status_code, refused.json()["reason"]) == (403, "Forbidden")


def test_connections_to_pods_are_refused_with_the_reason(proxied: Proxied) -> None:
    answer = proxied.control.kube.get(
        f"{proxied.path}/api/v1/namespaces/default/pods/web/exec",
        headers={"connection": "upgrade", "upgrade": "SPDY/3.1"},
    )
    assert answer.status_code == 400
    assert "forwards no connections to pods" in answer.json()["message"]


def test_cluster_whose_agent_is_not_connected_is_unavailable(
    installation: Installation, tmp_path: Path
) -> None:
    name = f"alone-{secrets.token_hex(3)}"
    configuration = join(installation.control, name, installation.member.kubeconfig, tmp_path)
    member_proxy = Proxied(installation.control, installation.member, name)
    answer = member_proxy.get("/version")
    assert answer.status_code == 503
    assert answer.json()["message"].endswith(f"the agent of cluster {name} is not connected to this server")
    with ExitStack() as stack:
        stack.enter_context(serving(tmp_path, configuration))
        eventually(lambda: member_proxy.get("/version").status_code == 200, "an agent that is connected")
    eventually(lambda: member_proxy.get("/version").status_code == 503, "an agent that has left")
