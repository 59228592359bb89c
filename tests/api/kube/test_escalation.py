"""Users grant no rights that they lack: writes of roles and of bindings."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

import httpx
import pytest

from events.json_values import Json
from tests.api.kube.client import MERGE, api
from tests.api.servers import kube_client

GROUP = "rbac.authorization.k8s.io"
ROLES = f"/apis/{GROUP}/v1/clusterroles"
BINDINGS = f"/apis/{GROUP}/v1/clusterrolebindings"
LOCAL_BINDINGS = f"/apis/{GROUP}/v1/namespaces/default/rolebindings"
ALICE: Json = {"apiGroup": GROUP, "kind": "User", "name": "alice"}


def rule(verbs: Sequence[str], resource: str, group: str = "") -> Json:
    return {"apiGroups": [group], "resources": [resource], "verbs": [*verbs]}


def role(name: str, *rules: Json, **fields: object) -> Json:
    return {"metadata": {"name": name}, "rules": [*rules], **fields}


def bound(name: str, role_name: str, kind: str = "ClusterRole") -> Json:
    reference = {"apiGroup": GROUP, "kind": kind, "name": role_name}
    return {"metadata": {"name": name}, "roleRef": reference, "subjects": [ALICE]}


READER = rule(["get"], "pods")
WRITER = rule(["get", "delete"], "pods")
WRITES = [
    rule(["create", "patch", "update"], kind, GROUP) for kind in ("clusterroles", "clusterrolebindings")
]
WRITES.append(rule(["create"], "rolebindings", GROUP))


@asynccontextmanager
async def alice(*more: Json) -> AsyncGenerator[tuple[httpx.AsyncClient, httpx.AsyncClient]]:
    """Yield clients of an admin and of alice, who reads pods, writes roles and bindings, and may do ``more``."""
    async with api() as (admin, services):
        for path, value in (
            (ROLES, role("mine", READER, *WRITES, *more)),
            (ROLES, role("reader", READER)),
            (ROLES, role("writer", WRITER)),
            (BINDINGS, bound("mine", "mine")),
        ):
            assert (await admin.post(path, json=value)).status_code == 201
        async with kube_client(services, headers={"impersonate-user": "alice"}) as user:
            yield admin, user


GATHERED: Json = {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}


@pytest.mark.parametrize(
    ("value", "more", "status"),
    [
        (role("new", READER), (), 201),
        (role("new", WRITER), (), 403),
        (role("new", WRITER), (rule(["escalate"], "clusterroles", GROUP),), 201),
        (role("new", WRITER), (rule(["bind"], "clusterroles", GROUP),), 403),
        (role("new", aggregationRule=GATHERED), (), 403),
        (role("new", aggregationRule=GATHERED), (rule(["*"], "*", "*"),), 201),
    ],
)
async def test_role_has_only_rights_that_its_writer_has(
    value: Json, more: tuple[Json, ...], status: int
) -> None:
    async with alice(*more) as (_, user):
        answer = await user.post(ROLES, json=value)
        assert answer.status_code == status, answer.text


async def test_refusal_lists_the_missing_rules() -> None:
    async with alice() as (_, user):
        refused = (await user.post(ROLES, json=role("new", WRITER))).json()
        assert refused["details"] == {"name": "new", "group": GROUP, "kind": "clusterroles"}
        assert refused["message"].endswith(
            'not currently held:\n{"verbs":["delete"],"apiGroups":[""],"resources":["pods"]}'
        )


async def test_role_beyond_the_rights_of_a_writer_may_be_changed_but_for_its_rules() -> None:
    async with alice() as (_, user):
        annotated = {"metadata": {"annotations": {"a": "b"}}}
        changed = {"rules": [rule(["get", "delete", "list"], "pods")]}
        for value, status in ((annotated, 200), (changed, 403)):
            answer = await user.patch(f"{ROLES}/writer", json=value, headers=MERGE)
            assert answer.status_code == status, answer.text


BIND = rule(["bind"], "clusterroles", GROUP)


@pytest.mark.parametrize("path", [BINDINGS, LOCAL_BINDINGS])
@pytest.mark.parametrize(
    ("name", "more", "status"),
    [
        ("reader", (), 201),
        ("writer", (), 403),
        ("writer", (BIND,), 201),
        ("writer", (rule(["escalate"], "clusterroles", GROUP),), 403),
        ("writer", (rule(["bind"], "roles", GROUP),), 403),
        ("absent", (), 404),
        ("absent", (BIND,), 201),
    ],
)
async def test_binding_grants_only_rights_that_its_writer_has_or_may_bind(
    path: str, name: str, more: tuple[Json, ...], status: int
) -> None:
    async with alice(*more) as (_, user):
        answer = await user.post(path, json=bound("new", name))
        assert answer.status_code == status, answer.text


@pytest.mark.parametrize(
    ("value", "status"),
    [
        ({"metadata": {"finalizers": None}}, 200),
        ({"metadata": {"finalizers": ["a/c"]}}, 200),
        (
            {"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "A", "name": "a", "uid": "u"}]}},
            200,
        ),
        ({"metadata": {"finalizers": None, "labels": {"a": "b"}}}, 403),
        ({"metadata": {"finalizers": None}, "subjects": [ALICE]}, 403),
    ],
)
async def test_binding_beyond_the_rights_of_a_writer_can_be_finalized(value: Json, status: int) -> None:
    async with alice() as (admin, user):
        metadata: Json = {"name": "new", "finalizers": ["a/b"]}
        finalized: Json = {**bound("new", "writer"), "metadata": metadata, "subjects": []}
        assert (await admin.post(BINDINGS, json=finalized)).status_code == 201
        answer = await user.patch(f"{BINDINGS}/new", json=value, headers=MERGE)
        assert answer.status_code == status, answer.text


async def test_missing_role_of_a_namespace_is_named() -> None:
    async with alice() as (_, user):
        answer = await user.post(LOCAL_BINDINGS, json=bound("new", "reader", "Role"))
        assert answer.json()["details"] == {"name": "reader", "group": GROUP, "kind": "roles"}


@pytest.mark.parametrize("omitted", [{}, {"apiGroup": ""}])
async def test_group_of_a_bound_role_may_be_omitted(omitted: Json) -> None:
    async with alice() as (admin, _):
        value: Json = {
            "metadata": {"name": "new"},
            "roleRef": {"kind": "ClusterRole", "name": "reader", **omitted},
        }
        created = await admin.post(BINDINGS, json=value)
        assert created.json()["roleRef"] == bound("new", "reader")["roleRef"]
        assert (await admin.put(f"{BINDINGS}/new", json=bound("new", "reader"))).status_code == 200
        changed = await admin.put(f"{BINDINGS}/new", json={**value, "subjects": []})
        assert changed.status_code == 200
        refused = await admin.put(f"{BINDINGS}/new", json=bound("new", "writer"))
        assert (refused.status_code, refused.json()["details"]["causes"][0]["field"]) == (422, "roleRef")
