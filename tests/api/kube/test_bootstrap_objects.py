"""Objects that exist without a record in the log: namespaces and their contents, cluster-info, and default roles."""

import asyncio
import base64
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import cast

import httpx
import pytest

from engine.http.kube.app import create_app
from engine.http.services import Services
from events.json_values import Json, as_text, list_at, objects_at
from events.kube_objects import KubeObject
from tests.api.kube.client import MERGE, create_cluster
from tests.api.servers import NOW_MS, kube_client, serving
from tests.background import background
from tests.builders.manifests import config_map, manifest

API = "/api/v1"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
AUTHORITY = b"a CA certificate"
INFO = f"{API}/namespaces/kube-public/configmaps/cluster-info"
CONTENTS = ("serviceaccounts", "configmaps")


@asynccontextmanager
async def api(authority: bytes = AUTHORITY) -> AsyncGenerator[tuple[httpx.AsyncClient, Services]]:
    async with serving() as services:
        app = create_app(services, lambda: NOW_MS, authority=authority)
        async with kube_client(services, app) as client:
            yield client, services


async def names(client: httpx.AsyncClient, path: str) -> list[str]:
    items = await listed(client, path)
    return [f"{item.namespace}/{item.name}" for item in items]


async def listed(client: httpx.AsyncClient, path: str) -> list[KubeObject]:
    answer = await client.get(path)
    assert answer.is_success, answer.text
    return [KubeObject(item) for item in objects_at(cast("Json", answer.json()), "items")]


async def read(client: httpx.AsyncClient, path: str) -> KubeObject | None:
    answer = await client.get(path)
    assert answer.status_code in {200, 404}, answer.text
    return KubeObject(cast("Json", answer.json())) if answer.is_success else None


async def create(client: httpx.AsyncClient, path: str, value: Json) -> None:
    answer = await client.post(path, json=value)
    assert answer.is_success, answer.text


async def create_namespace(client: httpx.AsyncClient, name: str) -> None:
    await create(client, f"{API}/namespaces", manifest("v1", "Namespace", name))


async def test_each_namespace_contains_an_account_and_the_authority() -> None:
    async with api() as (client, _):
        await create_namespace(client, "shop")
        await create_cluster(client)
        namespaces = {name.removeprefix("/") for name in await names(client, f"{API}/namespaces")}
        assert {"default", "kube-system", "kube-public", "shop", "karmada-es-edge"} <= namespaces
        for plural, name in zip(CONTENTS, ("default", "kube-root-ca.crt"), strict=True):
            everywhere = {item.key: item for item in await listed(client, f"{API}/{plural}")}
            assert {key[0] for key in everywhere} == namespaces
            for namespace in namespaces:
                path = f"{API}/namespaces/{namespace}/{plural}"
                content = await read(client, f"{path}/{name}")
                assert content is not None
                # Items of a list have no kind.
                assert {**content.document, **everywhere[namespace, name].document} == content.document
                assert f"{namespace}/{name}" in await names(client, path)
                assert await read(client, f"{path}/another") is None
            assert await read(client, f"{API}/namespaces/missing/{plural}/{name}") is None
            assert await names(client, f"{API}/namespaces/missing/{plural}") == []


async def test_contents_of_a_namespace_have_its_age_and_version_and_are_replaced_with_it() -> None:
    async with serving() as services, kube_client(services) as client:
        contents: list[KubeObject] = []
        for number in range(2):
            await create(client, f"{API}/namespaces/default/configmaps", config_map(f"later{number}"))
            await create_namespace(client, "shop")
            shop = await read(client, f"{API}/namespaces/shop")
            account = await read(client, f"{API}/namespaces/shop/serviceaccounts/default")
            assert shop is not None
            assert account is not None
            assert account.at("metadata", "creationTimestamp") == shop.at("metadata", "creationTimestamp")
            assert account.resource_version == shop.resource_version
            contents.append(account)
            assert (await client.delete(f"{API}/namespaces/shop")).is_success
            async with background(create_app(services, lambda: NOW_MS).run()):
                # The deletion has no event.
                while await read(client, f"{API}/namespaces/shop") is not None:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
        assert contents[0].uid != contents[1].uid


async def test_stored_object_replaces_the_bootstrap_object_of_its_name() -> None:
    async with api() as (client, _):
        await create_namespace(client, "shop")
        changes: tuple[tuple[str, Json], ...] = (
            (f"{API}/namespaces/kube-public", {"metadata": {"labels": {"tier": "gold"}}}),
            (f"{API}/namespaces/default/configmaps/kube-root-ca.crt", {"data": {"own": "yes"}}),
            (f"{RBAC}/clusterroles/cluster-admin", {"metadata": {"labels": {"tier": "gold"}}, "rules": []}),
        )
        for path, change in changes:
            answer = await client.patch(path, json=change, headers=MERGE)
            assert answer.is_success, answer.text
        assert Counter(await names(client, f"{API}/namespaces"))["/kube-public"] == 1
        maps = Counter(await names(client, f"{API}/configmaps"))
        assert (maps["default/kube-root-ca.crt"], maps["kube-public/kube-root-ca.crt"]) == (1, 1)
        stored = await read(client, f"{API}/namespaces/default/configmaps/kube-root-ca.crt")
        assert stored is not None
        assert stored.at("data", "own") == "yes"
        public = await read(client, f"{API}/namespaces/kube-public")
        assert public is not None
        assert public.labels["tier"] == "gold"
        accounts = {item.namespace: item for item in await listed(client, f"{API}/serviceaccounts")}
        assert accounts["kube-public"].resource_version == public.resource_version
        (role,) = [
            item for item in await listed(client, f"{RBAC}/clusterroles") if item.name == "cluster-admin"
        ]
        assert (role.labels["tier"], role.at("rules")) == ("gold", [])


@pytest.mark.parametrize("path", [f"{API}/namespaces/default", f"{RBAC}/clusterroles/view"])
async def test_bootstrap_object_is_changed_in_an_empty_log(path: str) -> None:
    async with api() as (client, _):
        patched = await client.patch(path, json={"metadata": {"labels": {"tier": "gold"}}}, headers=MERGE)
        assert patched.status_code == 200, patched.text
        value = await read(client, path)
        assert value is not None
        assert value.labels["tier"] == "gold"


async def test_bootstrap_object_is_replaced_in_an_empty_log() -> None:
    async with api() as (client, _):
        value = await read(client, path := f"{API}/namespaces/default")
        assert value is not None
        assert (await client.put(path, json=value.document)).status_code == 200


async def test_server_without_a_certificate_has_no_config_maps() -> None:
    async with api(b"") as (client, _):
        assert await names(client, f"{API}/configmaps") == []
        assert await read(client, INFO) is None
        assert await read(client, f"{API}/namespaces/default/configmaps/kube-root-ca.crt") is None
        assert "default/default" in await names(client, f"{API}/serviceaccounts")


def token(name: str, expiration: str = "", **more: object) -> Json:
    texts = {"token-id": name, "token-secret": "0123456789abcdef", "usage-bootstrap-signing": "true"}
    texts["expiration"] = expiration
    data = {field: base64.b64encode(text.encode()).decode() for field, text in texts.items()}
    head = manifest("v1", "Secret", f"bootstrap-token-{name}", type="bootstrap.kubernetes.io/token")
    return {**head, "data": data, **more}


async def test_cluster_info_is_in_one_namespace_and_signed_by_the_tokens_of_the_system() -> None:
    async with api() as (client, _):
        for namespace, secret in (
            ("kube-system", token("aaaaaa")),
            ("kube-system", token("bbbbbb", type="Opaque")),
            ("default", token("cccccc")),
            ("kube-system", token("dddddd", "2024-05-25T00:00:00Z")),
        ):
            await create(client, f"{API}/namespaces/{namespace}/secrets", secret)
        info = await read(client, INFO)
        assert info is not None
        assert sorted(info.object_at("data")) == ["jws-kubeconfig-aaaaaa", "kubeconfig"]
        certificate = base64.b64encode(AUTHORITY).decode()
        assert certificate in as_text(info.at("data", "kubeconfig"))
        everywhere = [name for name in await names(client, f"{API}/configmaps") if "cluster-info" in name]
        assert everywhere == ["kube-public/cluster-info"]
        assert "kube-public/cluster-info" in await names(client, f"{API}/namespaces/kube-public/configmaps")
        assert await names(client, f"{API}/namespaces/default/configmaps") == ["default/kube-root-ca.crt"]
        assert await read(client, INFO.replace("kube-public", "default")) is None


async def test_uids_of_bootstrap_objects_are_unique() -> None:
    paths = [f"{API}/{plural}" for plural in ("namespaces", *CONTENTS)]
    paths += [
        f"{RBAC}/{plural}" for plural in ("clusterroles", "clusterrolebindings", "roles", "rolebindings")
    ]
    async with api() as (client, _):
        uids = Counter([item.uid for path in paths for item in await listed(client, path)])
    assert max(uids.values()) == 1
    assert "" not in uids


async def test_aggregated_roles_contain_the_rules_of_their_parts() -> None:
    async with api() as (client, _):
        roles = {item.name: item for item in await listed(client, f"{RBAC}/clusterroles")}
        for name, part in (
            ("view", "system:aggregate-to-view"),
            ("view", "karmada-view"),
            ("edit", "karmada-edit"),
            ("edit", "karmada-view"),
            ("admin", "karmada-edit"),
            ("admin", "karmada-view"),
            ("admin", "system:aggregate-to-edit"),
        ):
            rules = objects_at(roles[name].document, "rules")
            assert [rule for rule in objects_at(roles[part].document, "rules") if rule not in rules] == []
        alone = await read(client, f"{RBAC}/clusterroles/admin")
        assert alone is not None
        assert alone.at("rules") == roles["admin"].at("rules")


@pytest.mark.parametrize(
    ("group", "resource"),
    [
        ("autoscaling.karmada.io", "federatedhpas/status"),
        ("multicluster.x-k8s.io", "serviceexports"),
        ("networking.karmada.io", "multiclusterservices"),
        ("policy.karmada.io", "propagationpolicies"),
        ("work.karmada.io", "resourcebindings/status"),
        ("work.karmada.io", "works"),
    ],
)
async def test_editors_may_change_what_editors_of_karmada_may_change(group: str, resource: str) -> None:
    async with api() as (client, _):
        role = await read(client, f"{RBAC}/clusterroles/edit")
    assert role is not None
    rules = [
        rule
        for rule in objects_at(role.document, "rules")
        if group in list_at(rule, "apiGroups") and resource in list_at(rule, "resources")
    ]
    assert {"update", "get"} <= {verb for rule in rules for verb in list_at(rule, "verbs")}


async def test_roles_of_a_namespace_are_listed_there_and_everywhere() -> None:
    async with api() as (client, _):
        name = "kube-public/system:karmada:bootstrap-signer-clusterinfo"
        assert name in await names(client, f"{RBAC}/roles")
        assert await names(client, f"{RBAC}/namespaces/kube-public/roles") == [name]
        assert await names(client, f"{RBAC}/namespaces/default/roles") == []


@pytest.mark.parametrize("path", [f"{API}/namespaces/default", f"{RBAC}/clusterroles/view"])
async def test_bootstrap_objects_are_as_old_as_the_log(path: str) -> None:
    async with api() as (client, services):
        before = await read(client, path)
        await create_namespace(client, "shop")
        first = await read(client, f"{API}/namespaces/shop")
        after = await read(client, path)
        assert services.log.last_number()
    assert before is not None
    assert first is not None
    assert after is not None
    assert before.at("metadata", "creationTimestamp") is None
    assert after.at("metadata", "creationTimestamp") == first.at("metadata", "creationTimestamp")


@pytest.mark.parametrize(
    "path",
    [
        f"{API}/configmaps",
        f"{API}/namespaces",
        f"{API}/serviceaccounts",
        f"{API}/namespaces/default/configmaps",
        f"{RBAC}/clusterroles",
    ],
)
@pytest.mark.parametrize("limit", [1, 2, 3])
async def test_pages_with_built_in_objects_have_at_most_the_limit(path: str, limit: int) -> None:
    async with api() as (client, _):
        await create_namespace(client, "shop")
        for namespace in ("default", "shop"):
            for name in ("a", "z"):
                await create(client, f"{API}/namespaces/{namespace}/configmaps", config_map(name))
        whole = await names(client, path)
        items: list[str] = []
        token = ""
        while token or not items:
            answer = (await client.get(path, params={"limit": limit, "continue": token})).json()
            page = [KubeObject(item) for item in answer["items"]]
            items += [f"{item.namespace}/{item.name}" for item in page]
            assert len(page) <= limit
            assert answer["metadata"].get("remainingItemCount", 0) == len(whole) - len(items)
            token = answer["metadata"].get("continue", "")
        assert items == whole
        assert items == sorted(items, key=lambda item: item.split("/"))
