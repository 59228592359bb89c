"""Replay of the write requests of kubectl 1.27 to 1.33: older versions send JSON, newer ones protobuf.

Recorded by ``tests.kubectl.recording``, so that the versions need not be installed.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import pytest

from events.json_values import Json
from tests.api.servers import kube_client, serving
from tests.kubectl.recording import FOLDER, Sent, read

FILES = sorted(FOLDER.glob("*.jsonl"))
PROTOBUF = "application/vnd.kubernetes.protobuf"
DERIVED = ("creationTimestamp", "managedFields", "resourceVersion", "uid")
KINDS = (
    "/api/v1/namespaces/team/configmaps",
    "/api/v1/namespaces/team/resourcequotas",
    "/api/v1/namespaces/team/secrets",
    "/api/v1/namespaces/team/serviceaccounts",
    "/api/v1/namespaces/team/services",
    "/apis/apps/v1/namespaces/team/deployments",
    "/apis/batch/v1/namespaces/team/cronjobs",
    "/apis/batch/v1/namespaces/team/jobs",
    "/apis/networking.k8s.io/v1/namespaces/team/ingresses",
    "/apis/policy/v1/namespaces/team/poddisruptionbudgets",
    "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "/apis/rbac.authorization.k8s.io/v1/namespaces/team/roles",
    "/apis/rbac.authorization.k8s.io/v1/namespaces/team/rolebindings",
    "/apis/scheduling.k8s.io/v1/priorityclasses",
)


def test_recordings_contain_json_and_protobuf_bodies() -> None:
    types = {path.stem: {request.type for request in read(path)} for path in FILES}
    assert PROTOBUF not in types["kubectl-1.27"] | types["kubectl-1.31"]
    assert PROTOBUF in types["kubectl-1.32"] & types["kubectl-1.33"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
async def test_each_recorded_request_gets_its_recorded_status_code(path: Path) -> None:
    await replayed(read(path))


async def test_all_versions_create_the_same_objects() -> None:
    first, *others = [await replayed(read(path)) for path in FILES]
    assert all(other == first for other in others)
    deployment = json.loads(first["/apis/apps/v1/namespaces/team/deployments"])[0]
    assert deployment["metadata"]["labels"] == {"app": "web", "tier": "gold"}
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert deployment["spec"]["replicas"] == 3
    assert (container["image"], container["env"]) == ("nginx:2", [{"name": "A", "value": "b"}])


async def replayed(sent: Sequence[Sent]) -> dict[str, str]:
    """Return the stored objects after these requests as text, by kind."""
    async with serving() as services, kube_client(services) as client:
        for request in sent:
            content_type = {"content-type": request.type} if request.type else {}
            answer = await client.request(
                request.method, request.path, content=request.content, headers=content_type
            )
            assert answer.status_code == request.code, (request.method, request.path, answer.text)
        lists = {path: (await client.get(path)).raise_for_status().json() for path in KINDS}
    return {path: json.dumps([_plain(item) for item in listed["items"]]) for path, listed in lists.items()}


def _plain(value: Json) -> Json:
    metadata = cast("Json", value["metadata"])
    kept = {name: item for name, item in metadata.items() if name not in DERIVED}
    return {**value, "metadata": kept}
