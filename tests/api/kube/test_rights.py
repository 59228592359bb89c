"""Authentication and authorization over HTTP, without kubectl: tokens, reviews, and random bodies."""

import itertools
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import cast

import httpx
import pytest

from engine.http.kube.app import create_app
from events.json_values import Json
from tests.api.servers import NOW_MS, TOKEN, kube_client, serving
from tests.builders.manifests import manifest

REVIEWS = "/apis/authorization.k8s.io/v1"
TOKENS = "/api/v1/namespaces/default/serviceaccounts/default/token"


@asynccontextmanager
async def api(**headers: str) -> AsyncGenerator[httpx.AsyncClient]:
    """Yield a client with the server's token; ``_`` in header names means ``-``."""
    sent_headers = {name.replace("_", "-"): text for name, text in headers.items()}
    async with serving() as services, kube_client(services, headers=sent_headers) as client:
        yield client


@pytest.mark.parametrize(
    "authorization", ["", "Bearer", "Bearer ", "Basic YTpi", "Bearer a.b.c", "Bearer \x80", "Bearer ..."]
)
async def test_missing_or_invalid_token_is_unauthorized(authorization: str) -> None:
    async with api() as client:
        answer = await client.get(
            "/api/v1/namespaces", headers=[(b"authorization", authorization.encode("latin-1"))]
        )
        assert (answer.status_code, answer.json()["reason"]) == (401, "Unauthorized")


async def test_service_account_token_expires() -> None:
    now_ms = [NOW_MS]
    async with serving() as services:
        transport = httpx.ASGITransport(create_app(services, lambda: now_ms[0]))
        async with httpx.AsyncClient(transport=transport, base_url="http://kube") as client:
            admin = {"authorization": f"Bearer {TOKEN}"}
            made = await client.post(TOKENS, json={"spec": {"expirationSeconds": 600}}, headers=admin)
            status = made.json()["status"]
            robot = {"authorization": f"Bearer {status['token']}"}
            assert (await client.get("/apis", headers=robot)).status_code == 200
            now_ms[0] += 600_000
            assert (await client.get("/apis", headers=robot)).status_code == 401
            assert (await client.get("/apis", headers=admin)).status_code == 200


@pytest.mark.parametrize(("seconds", "code"), [(-1, 422), (0, 422), (599, 422), (600, 201), (None, 201)])
async def test_token_is_requested_for_ten_minutes_or_more(seconds: int | None, code: int) -> None:
    async with api() as client:
        answer = await client.post(TOKENS, json={"spec": {"expirationSeconds": seconds}})
        assert answer.status_code == code


async def test_access_review_of_another_user() -> None:
    async with api() as client:
        attributes = {"namespace": "default", "verb": "get", "resource": "pods"}
        binding = {
            "metadata": {"name": "team"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
            "subjects": [{"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": "team"}],
        }
        path = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings"
        assert (await client.post(path, json=binding)).status_code == 201
        for groups, allowed in ((["team"], True), (["others"], False), (["system:masters"], True)):
            spec = {"user": "alice", "groups": groups, "resourceAttributes": attributes}
            answer = await client.post(f"{REVIEWS}/subjectaccessreviews", json={"spec": spec})
            assert (answer.status_code, answer.json()["status"]["allowed"]) == (201, allowed)
        local = f"{REVIEWS}/namespaces/other/localsubjectaccessreviews"
        spec = {"user": "alice", "groups": ["team"], "resourceAttributes": attributes}
        elsewhere = await client.post(local, json={"spec": spec})
        assert elsewhere.status_code == 422
        assert elsewhere.json()["message"].endswith('Invalid value: "default": must match metadata.namespace')


async def test_token_review_returns_the_user() -> None:
    async with api() as client:
        path = "/apis/authentication.k8s.io/v1/tokenreviews"
        made = (await client.post(TOKENS, json={"spec": {}})).json()["status"]["token"]
        status = (await client.post(path, json={"spec": {"token": made}})).json()["status"]
        assert status["user"]["username"] == "system:serviceaccount:default:default"
        assert "system:serviceaccounts:default" in status["user"]["groups"]
        nobody = (await client.post(path, json={"spec": {"token": "x"}})).json()["status"]
        assert nobody["authenticated"] is False
        reviews: list[Json] = [{}, {"spec": {}}, {"spec": {"token": ""}}]
        for review in reviews:
            empty = await client.post(path, json=review)
            expected = (400, "token is required for TokenReview in authentication")
            assert (empty.status_code, empty.json()["message"]) == expected


async def test_token_for_another_audience_is_valid_there_only() -> None:
    review = "/apis/authentication.k8s.io/v1/tokenreviews"
    own_audience = "https://kubernetes.default.svc.cluster.local"
    async with api() as client:
        for audiences in ([], [own_audience], ["vault"], ["vault", own_audience]):
            made = await client.post(TOKENS, json={"spec": {"audiences": audiences}})
            token = made.json()["status"]["token"]
            headers = {"authorization": f"Bearer {token}"}
            is_here = not audiences or own_audience in audiences
            assert (await client.get("/apis", headers=headers)).status_code == (200 if is_here else 401)
            for named, valid in (([], is_here), (["vault"], "vault" in audiences), (["other"], False)):
                spec = {"token": token, "audiences": named}
                status = (await client.post(review, json={"spec": spec})).json()["status"]
                assert status["authenticated"] is valid
                assert status.get("audiences") == ((named or [own_audience]) if valid else None)
        status = (await client.post(review, json={"spec": {"token": TOKEN}})).json()["status"]
        assert status["audiences"] == [own_audience]
        spec = {"token": TOKEN, "audiences": ["vault"]}
        status = (await client.post(review, json={"spec": spec})).json()["status"]
        assert status["authenticated"] is False


async def test_unknown_kinds_are_subject_to_authorization() -> None:
    async with api(impersonate_user="alice") as client:
        for path in (
            "/apis/example.io/v1/gauges",
            "/apis/apps/v1/namespaces/shop/gauges",
            "/metrics",
            "/api/v1/nodes",
        ):
            answer = await client.get(path)
            assert answer.status_code == 403, path
        assert (await client.get("/apis")).status_code == 200


_VALUES: list[object] = [None, 7, "x", [], {}, [None], {"a": None}, "\ud800", 1e300, -1]
_FIELDS = ("resourceAttributes", "nonResourceAttributes", "user", "groups", "token", "expirationSeconds")
_MORE = ("audiences", "boundObjectRef", "namespace", "rules", "subjects", "roleRef", "aggregationRule")
_PATHS = (
    f"{REVIEWS}/selfsubjectaccessreviews",
    f"{REVIEWS}/selfsubjectrulesreviews",
    f"{REVIEWS}/subjectaccessreviews",
    "/apis/authentication.k8s.io/v1/tokenreviews",
    "/apis/authentication.k8s.io/v1/selfsubjectreviews",
    TOKENS,
    "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
)


@pytest.mark.parametrize("path", _PATHS)
async def test_random_bodies_never_cause_a_server_error(path: str) -> None:
    async with api() as client:
        for count, (field, value) in enumerate(itertools.product((*_FIELDS, *_MORE), _VALUES)):
            body: Json = {"metadata": {"name": f"n{count}"}, "spec": {field: value}, field: value}
            answer = await client.post(path, content=_encoded(body))
            assert answer.status_code < 500, (body, answer.text)
            cast("Json", answer.json())
        # Malformed roles written by masters must not grant anything by accident.
        assert (await client.get("/api/v1/nodes", headers={"impersonate-user": "alice"})).status_code == 403


def _encoded(body: Json) -> bytes:

    return json.dumps(body).encode()


async def test_default_service_account_is_listed_once_per_listed_namespace() -> None:
    async with api() as client:
        cluster = manifest("cluster.karmada.io/v1alpha1", "Cluster", "far", spec={"syncMode": "Push"})
        joined = await client.post("/apis/cluster.karmada.io/v1alpha1/clusters", json=cluster)
        assert joined.status_code == 201, joined.text
        spaces = (await client.get("/api/v1/namespaces")).json()["items"]
        accounts = (await client.get("/api/v1/serviceaccounts")).json()["items"]
        names = {namespace["metadata"]["name"] for namespace in spaces}
        assert "karmada-es-far" in names
        assert {account["metadata"]["namespace"] for account in accounts} == names


async def test_uid_is_impersonated_together_with_a_group() -> None:
    roles = "/apis/rbac.authorization.k8s.io/v1"
    rules = [
        {"apiGroups": [""], "resources": ["users", "groups"], "verbs": ["impersonate"]},
        {"apiGroups": ["authentication.k8s.io"], "resources": ["uids"], "verbs": ["impersonate"]},
    ]
    subject = {"kind": "ServiceAccount", "name": "default", "namespace": "default"}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "acting"}
    async with api() as client:
        head = {"metadata": {"name": "acting"}}
        assert (await client.post(f"{roles}/clusterroles", json={**head, "rules": rules})).status_code == 201
        binding = {**head, "subjects": [subject], "roleRef": reference}
        assert (await client.post(f"{roles}/clusterrolebindings", json=binding)).status_code == 201
        made = (await client.post(TOKENS, json={"spec": {}})).json()["status"]["token"]
        headers = {
            "authorization": f"Bearer {made}",
            "impersonate-user": "alice",
            "impersonate-group": "dev",
            "impersonate-uid": "u-1",
        }
        path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
        answer = await client.post(path, json={}, headers=headers)
    assert answer.status_code == 201, answer.text
    assert answer.json()["status"]["userInfo"]["uid"] == "u-1"


async def test_keys_of_impersonated_extra_values_are_decoded() -> None:
    headers = {"impersonate-user": "alice", "impersonate-extra-example.com%2Fteam": "blue"}
    async with api() as client:
        path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
        answer = await client.post(path, json={}, headers=headers)
    assert answer.json()["status"]["userInfo"]["extra"] == {"example.com/team": ["blue"]}


@pytest.mark.parametrize(
    ("name", "group", "groups"),
    [
        ("alice", "", ["system:authenticated"]),
        ("alice", "dev", ["dev", "system:authenticated"]),
        ("alice", "system:unauthenticated", ["system:unauthenticated"]),
        ("system:anonymous", "", ["system:unauthenticated"]),
        ("system:anonymous", "system:unauthenticated", ["system:unauthenticated"]),
        ("system:anonymous", "dev", ["dev", "system:unauthenticated"]),
    ],
)
async def test_impersonated_user_is_authenticated_unless_anonymous(
    name: str, group: str, groups: list[str]
) -> None:
    headers = {"impersonate-user": name} | ({"impersonate-group": group} if group else {})
    async with api() as client:
        path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
        admin = {"metadata": {"name": "reviewers"}}
        rule = {"apiGroups": ["authentication.k8s.io"], "resources": ["*"], "verbs": ["create"]}
        roles = "/apis/rbac.authorization.k8s.io/v1"
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "reviewers"}
        subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": name}
        assert (await client.post(f"{roles}/clusterroles", json={**admin, "rules": [rule]})).is_success
        binding = {**admin, "roleRef": reference, "subjects": [subject]}
        assert (await client.post(f"{roles}/clusterrolebindings", json=binding)).is_success
        answer = await client.post(path, json={}, headers=headers)
    assert answer.json()["status"]["userInfo"]["groups"] == groups


NAMED = "fieldSelector=metadata.name%3Dmine"


@pytest.mark.parametrize(
    ("verb", "method", "rest", "allowed"),
    [
        # A rule with resource names permits no create, and no deletion of a collection: both have no name.
        ("create", "POST", f"?{NAMED}", False),
        ("deletecollection", "DELETE", f"?{NAMED}", False),
        ("list", "GET", f"?{NAMED}", True),
        ("list", "GET", f"?{NAMED}&fieldSelector=", True),
        ("list", "GET", f"?fieldSelector=&{NAMED}", False),
        # A request for one object is no watch, whatever its parameters say.
        ("watch", "GET", "/mine?watch=true", False),
        ("get", "GET", "/mine?watch=true", True),
        # Any value but 0 and false begins a watch.
        *(
            ("list", "GET", f"?{NAMED}&timeoutSeconds=1&watch{value}", False)
            for value in ("", "=", "=t", "=TRUE", "=yes", "=1", "=true", "=1&watch=0")
        ),
        ("list", "GET", f"?{NAMED}&watch=FALSE", True),
        ("list", "GET", f"?{NAMED}&watch=0&watch=1", True),
    ],
)
async def test_rights_are_those_of_the_act_that_is_carried_out(
    verb: str, method: str, rest: str, allowed: bool
) -> None:
    maps = "/api/v1/namespaces/default/configmaps"
    roles = "/apis/rbac.authorization.k8s.io/v1/namespaces/default"
    rule = {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["mine"], "verbs": [verb]}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "mine"}
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice"}
    head = {"metadata": {"name": "mine"}}
    async with api() as client:
        for path, value in (
            (maps, head),
            (f"{roles}/roles", {**head, "rules": [rule]}),
            (f"{roles}/rolebindings", {**head, "subjects": [subject], "roleRef": reference}),
        ):
            assert (await client.post(path, json=value)).status_code == 201
        body = {"metadata": {"name": "other"}} if method == "POST" else None
        headers = {"impersonate-user": "alice"}
        answer = await client.request(method, f"{maps}{rest}", json=body, headers=headers)
    assert answer.status_code == (200 if allowed else 403), answer.text


@pytest.mark.parametrize("method", ["patch", "update"])
@pytest.mark.parametrize("may_create", [False, True])
async def test_write_that_creates_an_event_needs_the_right_to_create(method: str, may_create: bool) -> None:
    namespace = "/api/v1/namespaces/default"
    roles = "/apis/rbac.authorization.k8s.io/v1/namespaces/default"
    verbs = [method, "create"] if may_create else [method]
    rule = {"apiGroups": [""], "resources": ["events"], "verbs": verbs}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "mine"}
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice"}
    head = {"metadata": {"name": "mine"}}
    event = manifest("v1", "Event", "one", "default", involvedObject={"namespace": "default"}, reason="Seen")
    headers = {"impersonate-user": "alice"}
    if method == "patch":
        headers["content-type"] = "application/apply-patch+yaml"
    async with api() as client:
        for path, value in (
            (f"{roles}/roles", {**head, "rules": [rule]}),
            (f"{roles}/rolebindings", {**head, "subjects": [subject], "roleRef": reference}),
        ):
            assert (await client.post(path, json=value)).status_code == 201
        verb, path = "PATCH" if method == "patch" else "PUT", f"{namespace}/events/one?fieldManager=me"
        answer = await client.request(verb, path, json=event, headers=headers)
    assert answer.status_code == (201 if may_create else 403), answer.text


async def test_default_roles_and_their_bindings_have_different_uids() -> None:
    uids: list[str] = []
    async with api() as client:
        for kind in ("clusterroles", "clusterrolebindings", "roles", "rolebindings"):
            answer = await client.get(f"/apis/rbac.authorization.k8s.io/v1/{kind}")
            uids += [item["metadata"]["uid"] for item in answer.json()["items"]]
    assert len(uids) > 20
    assert len(set(uids)) == len(uids)
