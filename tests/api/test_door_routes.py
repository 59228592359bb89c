"""The door over HTTP: what a client sends and gets."""

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from starlette.applications import Starlette

from engine.gateway import door_routes
from tests.api.doors import open_house
from tests.api.test_door import DEPLOYMENT

CLUSTER = b"{apiVersion: cluster.karmada.io/v1alpha1, kind: Cluster, metadata: {name: member1}}"


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    async with open_house(tmp_path) as house:
        app = Starlette(routes=door_routes.routes(house.door))
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://here/api/v1/") as opened:
            yield opened


async def test_apply_scale_patch_label_and_delete(client: httpx.AsyncClient) -> None:
    foo = {"kind": "deploy", "name": "foo"}
    answers = [
        await client.post("apply", content=DEPLOYMENT),
        await client.post("scale", json={**foo, "replicas": 4}),
        await client.post("patch", json={**foo, "patch": {"spec": {"paused": True}}}),
        await client.post("label", json={**foo, "labels": {"team": "a", "app": None}}),
        await client.post("delete", params={"kind": "deployments", "name": "foo"}),
    ]

    assert [answer.status_code for answer in answers] == [200] * 5
    actions = [answer.json()["results"][0]["action"] for answer in answers]
    assert actions == ["created", "scaled", "patched", "labeled", "deleted"]
    assert answers[3].json()["results"][0]["object"]["metadata"]["labels"] == {"team": "a"}


async def test_clusters_are_tainted_and_untainted(client: httpx.AsyncClient) -> None:
    taint = {"key": "a", "effect": "NoExecute"}
    await client.post("apply", content=CLUSTER)

    actions = [
        (await client.post(f"clusters/member1/{command}", json=body)).json()["results"][0]["action"]
        for command, body in [
            ("taint", {"taints": [taint]}),
            ("untaint", {"taints": [taint]}),
            ("cordon", {}),
            ("uncordon", {}),
            ("label", {"labels": {"location": "us"}}),
        ]
    ]

    assert actions == ["tainted", "untainted", "cordoned", "uncordoned", "labeled"]


@pytest.mark.parametrize(
    ("path", "content", "status"),
    [
        ("apply", b"a: [", 422),
        ("apply?validate=maybe", DEPLOYMENT, 400),
        ("apply?dryRun=perhaps", DEPLOYMENT, 400),
        ("delete?kind=deploy&name=none", b"", 404),
        ("delete?kind=deploy", b"", 400),
        ("scale", b"", 400),
        ("scale", b"\xff", 400),
        ("scale", b'{"kind": "deploy", "name": "foo", "replicas": -1}', 400),
        ("scale", b'{"kind": "deploy", "name": "foo", "replicas": 1, "extra": 1}', 400),
        ("scale", b'{"kind": "gizmo", "name": "foo", "replicas": 1}', 404),
        ("scale", b'{"kind": "rb", "name": "foo", "replicas": 1}', 422),
        ("label", b'{"kind": "deploy", "name": "foo", "labels": ' + b'{"a":' * 5000, 400),
        ("patch", b'{"kind": "deploy", "name": "foo", "patch": {}}', 404),
        ("clusters/nobody/taint", b'{"taints": [{"key": "a", "effect": "NoExecute"}]}', 404),
        ("clusters/nobody/cordon", b"", 404),
        ("scale", b" " * 3_000_000, 413),
    ],
)
async def test_what_is_wrong_is_a_4xx_with_a_reason(
    client: httpx.AsyncClient, path: str, content: bytes, status: int
) -> None:
    answer = await client.post(path, content=content)

    assert answer.status_code == status
    assert answer.json()["error"]["reason"]


async def test_a_patch_from_an_old_version_is_a_conflict(client: httpx.AsyncClient) -> None:
    foo = {"kind": "deploy", "name": "foo"}
    await client.post("apply", content=DEPLOYMENT)
    await client.post("scale", json={**foo, "replicas": 4})

    answer = await client.post(
        "patch", json={**foo, "patch": {"spec": {"replicas": 1}}, "resourceVersion": 1}
    )

    assert answer.status_code == 409
