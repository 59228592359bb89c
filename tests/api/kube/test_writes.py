"""Objects that are created and replaced, from JSON and YAML; a refused request writes no event."""

import asyncio
import json
from typing import cast

import httpx
import pytest

from engine.http.kube import write_parsing
from events.json_values import Json, object_at
from tests.api.kube.client import MAPS, MERGE, POLICIES, api, create, version
from tests.builders.manifests import (
    config_map,
    definition,
    manifest,
    override_policy,
    policy,
    rebalancer,
    selector,
    selector_of,
)

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
RBAC = "rbac.authorization.k8s.io/v1"
ROLES = f"/apis/{RBAC}/clusterroles"
OVERRIDES = "/apis/policy.karmada.io/v1alpha1/namespaces/default/overridepolicies"
REBALANCERS = "/apis/apps.karmada.io/v1alpha1/workloadrebalancers"
CLUSTER_POLICIES = "/apis/policy.karmada.io/v1alpha1/clusterpropagationpolicies"


async def test_object_is_created_updated_and_deleted() -> None:
    async with api() as (client, _):
        created = await create(client, config_map("one", a="1"))
        again = await client.post(MAPS, json=config_map("one"))
        assert (again.status_code, again.json()["reason"]) == (409, "AlreadyExists")

        created["data"] = {"a": "2"}
        replaced = (await client.put(f"{MAPS}/one", json=created)).json()
        assert int(version(replaced)) > int(version(created))
        late = await client.put(f"{MAPS}/one", json=created)
        assert (late.status_code, late.json()["reason"]) == (409, "Conflict")

        wrong = {"preconditions": {"uid": "another"}}
        kept = await client.request("DELETE", f"{MAPS}/one", json=wrong)
        assert kept.status_code == 409
        deleted = await client.delete(f"{MAPS}/one")
        assert deleted.json()["status"] == "Success"
        missing = await client.get(f"{MAPS}/one")
        assert missing.json()["message"] == 'configmaps "one" not found'


async def test_concurrent_creates_each_get_their_own_answer() -> None:
    async with api() as (client, services):
        names = [*(f"many-{index}" for index in range(40)), "many-7", "Not A Name", "many-9"]
        made_all = await asyncio.gather(*(client.post(MAPS, json=config_map(name)) for name in names))
        codes = [answer.status_code for answer in made_all]
        assert codes == [201] * 40 + [409, 422, 409]
        for name, answer in zip(names[:40], made_all, strict=False):
            assert answer.json()["metadata"]["name"] == name
            assert answer.json() == (await client.get(f"{MAPS}/{name}")).json(), "as it is shown later"
        traced = await client.post(MAPS, json=config_map("traced"), headers={"traceparent": TRACE})
        last = (await services.log.read_all(int(version(traced.json())) - 1, 1))[0]
        assert last.headers["ce_traceparent"].split("-")[1] == TRACE.split("-")[1]


async def test_generated_names_are_unique() -> None:
    async with api() as (client, _):
        value: Json = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "log-"}}
        names = [cast("Json", (await create(client, value))["metadata"])["name"] for _ in range(3)]
        assert len(set(names)) == 3
        assert all(str(name).startswith("log-") for name in names)


async def test_generated_name_that_is_taken_is_generated_again(monkeypatch: pytest.MonkeyPatch) -> None:
    value: Json = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "log-"}}
    letters = iter("bbbbbbbbbbbbbbbccccc" + "b" * 40)

    def choice(_letters: str) -> str:
        return next(letters)

    monkeypatch.setattr(write_parsing.secrets, "choice", choice)
    async with api() as (client, _):
        names = [cast("Json", (await create(client, value))["metadata"])["name"] for _ in range(2)]
        assert names == ["log-bbbbb", "log-ccccc"]
        refused = await client.post(MAPS, json=value)
        assert (refused.status_code, refused.json()["reason"]) == (409, "AlreadyExists")


async def test_yaml_body_is_accepted() -> None:
    async with api() as (client, _):
        body = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\ndata: {a: 'yes'}\n"
        answer = await client.post(MAPS, content=body, headers={"content-type": "application/yaml"})
        assert answer.json()["data"] == {"a": "yes"}


async def test_list_in_yaml_is_not_taken_for_its_item() -> None:
    text = (
        "apiVersion: v1\nkind: {}\nitems:\n- {{apiVersion: v1, kind: ConfigMap, metadata: {{name: one}}}}\n"
    )
    async with api() as (client, services):
        before = services.log.last_number()
        for kind in ("List", "ConfigMapList"):
            body, headers = text.format(kind), {"content-type": "application/yaml"}
            assert (await client.post(MAPS, content=body, headers=headers)).status_code == 400
            headers = {"content-type": "application/apply-patch+yaml"}
            applied = await client.patch(f"{MAPS}/one?fieldManager=me", content=body, headers=headers)
            assert applied.status_code == 400
        assert services.log.last_number() == before


async def test_builtin_kind_may_be_omitted_from_a_body_and_custom_kind_may_not() -> None:
    async with api() as (client, _):
        made_one = await client.post(MAPS, json={"metadata": {"name": "one"}})
        assert (made_one.status_code, made_one.json()["kind"]) == (201, "ConfigMap")
        assert (await client.put(f"{MAPS}/one", json={"metadata": {"name": "one"}})).status_code == 200
        refused = await client.post(POLICIES, json={"metadata": {"name": "one"}, "spec": {}})
        assert refused.status_code == 400


async def test_policy_gets_defaults_and_keeps_its_permanent_id() -> None:
    async with api() as (client, _):
        body = policy("p")
        made_one = (await client.post(POLICIES, json=body)).json()
        assert made_one["spec"]["schedulerName"] == "default-scheduler"
        assert made_one["spec"]["resourceSelectors"][0]["namespace"] == "default"
        made_one["metadata"]["labels"] = {}
        denied = await client.put(f"{POLICIES}/p", json=made_one)
        assert denied.status_code == 403
        assert (
            'admission webhook "propagationpolicy.karmada.io" denied the request' in denied.json()["message"]
        )


async def test_policies_and_rebalancers_with_unknown_kinds_are_warned_about() -> None:
    unknown = selector("web", ("apps/v1", "Deploymnt"))
    reason = "has no effect: this server has no kind Deploymnt of apps/v1; check apiVersion and kind"
    async with api() as (client, _):
        for path, value, field in (
            (POLICIES, policy("p", {}, selector(), unknown), "spec.resourceSelectors[1]"),
            (OVERRIDES, override_policy("o", resourceSelectors=[unknown]), "spec.resourceSelectors[0]"),
            (REBALANCERS, rebalancer("r", unknown), "spec.workloads[0]"),
        ):
            answer = await client.post(path, json=value)
            assert answer.status_code == 201
            assert answer.headers["warning"] == f'299 - "{field} {reason}"'
        valid = await client.post(POLICIES, json=policy("valid", {}, selector_of(config_map("one"))))
        assert "warning" not in valid.headers


async def test_definition_of_a_kind_that_exists_is_not_served_and_warned_about() -> None:
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    async with api() as (client, _):
        first = await client.post(definitions, json=definition("ships", "Ship"))
        assert "warning" not in first.headers
        # Its name comes first, but it is younger.
        second = await client.post(definitions, json=definition("boats", "Ship"))
        assert second.status_code == 201
        warning = "boats.example.io is not served: ships.example.io has the kind Ship already"
        assert second.headers["warning"] == f'299 - "{warning}"'
        path = "/apis/example.io/v1/namespaces/default"
        assert (await client.get(f"{path}/ships")).status_code == 200
        assert (await client.get(f"{path}/boats")).status_code == 404


async def test_refused_request_writes_no_event() -> None:
    async with api() as (client, services):
        await create(client, config_map("one"))
        before = services.log.last_number()
        refused = [
            await client.post(MAPS, content=b"{"),
            await client.post(MAPS, json=config_map("Not A Name")),
            await client.post(MAPS, json=config_map("one")),
            await client.post(MAPS.replace("default", "nowhere"), json=config_map("two")),
            await client.post(MAPS, json={**config_map("two"), "kind": "Secret"}),
            await client.post(MAPS, json=config_map("two"), params={"dryRun": "All"}),
            await client.put(f"{MAPS}/nobody", json=config_map("nobody")),
            await client.patch(f"{MAPS}/one", content="[]", headers={"content-type": "text/plain"}),
            await client.delete("/api/v1/namespaces/default"),
        ]
        codes = [answer.status_code for answer in refused]
        assert codes == [400, 422, 409, 404, 400, 201, 404, 415, 403]
        assert services.log.last_number() == before


async def test_invalid_field_of_a_stored_kind_is_reported_once() -> None:
    overrides = "/apis/policy.karmada.io/v1alpha1/namespaces/default/overridepolicies"
    image = {"component": "Name", "operator": "add"}
    wrong = override_policy("wrong", {"overriders": {"imageOverrider": [image]}}, {})
    async with api() as (client, _):
        answer = (await client.post(overrides, json=wrong)).json()
    fields = [cause["field"] for cause in answer["details"]["causes"]]
    rules = "spec.overrideRules"
    assert fields == [f"{rules}[0].overriders.imageOverrider[0].component", f"{rules}[1].overriders"]


TWICE = """
apiVersion: v1
kind: ConfigMap
metadata: {name: twice}
data:
  a: one
  a: two
"""
TWICE_IN_BRACES = (
    '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"twice"},"data":{"a":"1","a":"two"}}'
)


@pytest.mark.parametrize("text", [TWICE, TWICE_IN_BRACES, TWICE_IN_BRACES.replace('"', "")])
@pytest.mark.parametrize(
    ("method", "path", "kind"),
    [("POST", MAPS, "application/yaml"), ("PATCH", f"{MAPS}/twice", "application/apply-patch+yaml")],
)
async def test_duplicate_yaml_fields_are_reported(text: str, method: str, path: str, kind: str) -> None:
    async with api() as (client, _):

        async def write(validation: str) -> httpx.Response:
            query = {"fieldValidation": validation, "fieldManager": "one"}
            headers = {"content-type": kind}
            spaced = text.replace(":", ": ")
            return await client.request(method, path, params=query, content=spaced, headers=headers)

        refused = await write("Strict")
        assert (refused.status_code, refused.json()["reason"]) == (400, "BadRequest")
        assert 'strict decoding error: duplicate field "data.a"' in refused.json()["message"]
        for validation, warnings in (("Warn", ['299 - "duplicate field \\"data.a\\""']), ("Ignore", [])):
            answer = await write(validation)
            assert answer.status_code == 201, answer.text
            assert answer.json()["data"] == {"a": "two"}
            assert answer.headers.get_list("warning") == warnings
            await client.delete(f"{MAPS}/twice")


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (ROLES, manifest(RBAC, "ClusterRole", "one", "default", rules=[])),
        (CLUSTER_POLICIES, {**policy("one", namespace="default"), "kind": "ClusterPropagationPolicy"}),
    ],
)
@pytest.mark.parametrize("verb", ["create", "replace", "patch", "apply"])
async def test_namespace_of_a_cluster_scoped_object_is_removed(path: str, value: Json, verb: str) -> None:
    async with api() as (client, services):
        if verb in ("replace", "patch"):
            stored = (await client.post(path, json={**value, "metadata": {"name": "one"}})).json()
            labels = {**stored["metadata"].get("labels", {}), "a": "b"}
            metadata = {**stored["metadata"], "namespace": "default", "labels": labels}
            value = {**stored, "metadata": metadata}
        requests = {
            "create": ("POST", path, "application/json"),
            "replace": ("PUT", f"{path}/one", "application/json"),
            "patch": ("PATCH", f"{path}/one", "application/merge-patch+json"),
            "apply": ("PATCH", f"{path}/one?fieldManager=me", "application/apply-patch+yaml"),
        }
        method, target, form = requests[verb]
        answer = await client.request(method, target, json=value, headers={"content-type": form})
        assert answer.is_success, answer.text
        assert "namespace" not in answer.json()["metadata"]
        (*_, newest) = await services.log.read_all(0, 10)
        assert "namespace" not in object_at(json.loads(newest.value), "manifest", "metadata")


LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"


async def test_put_creates_an_absent_lease() -> None:
    lease: Json = {"metadata": {"name": "one", "resourceVersion": "7"}, "spec": {"holderIdentity": "me"}}
    async with api() as (client, services):
        created = await client.put(f"{LEASES}/one", json=lease)
        assert created.status_code == 201, created.text
        assert (await client.get(f"{LEASES}/one")).json() == created.json()
        before = services.log.last_number()
        other: Json = {**lease, "metadata": {"name": "two", "uid": "of-a-deleted-one"}}
        refused = await client.put(f"{LEASES}/two", json=other)
        assert (refused.status_code, refused.json()["reason"]) == (409, "Conflict")
        absent = await client.put("/apis/coordination.k8s.io/v1/namespaces/absent/leases/one", json=lease)
        assert absent.status_code == 404
        assert services.log.last_number() == before


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("/api/v1/namespaces/default/services", {"spec": {"ports": [{"port": 80}]}}),
        ("/api/v1/namespaces/default/limitranges", {"spec": {"limits": []}}),
        (f"{ROLES}", {"rules": []}),
        ("/api/v1/namespaces/default/events", {"involvedObject": {"namespace": "default"}}),
    ],
)
async def test_put_creates_absent_objects_of_some_kinds(path: str, value: Json) -> None:
    async with api() as (client, _):
        for code in (201, 200):
            answer = await client.put(f"{path}/one", json={"metadata": {"name": "one"}, **value})
            assert answer.status_code == code, answer.text
        config = await client.put(f"{MAPS}/one", json=config_map("one"))
        assert config.status_code == 404


async def test_service_that_becomes_internal_loses_its_node_ports() -> None:
    path = "/api/v1/namespaces/default/services"
    spec = {"type": "NodePort", "ports": [{"port": 80, "nodePort": 30_080}]}
    async with api() as (client, _):
        made = await client.post(path, json={"metadata": {"name": "web"}, "spec": spec})
        assert made.status_code == 201, made.text
        changed = await client.patch(f"{path}/web", json={"spec": {"type": "ClusterIP"}}, headers=MERGE)
        assert changed.status_code == 200, changed.text
        assert "nodePort" not in changed.json()["spec"]["ports"][0]


@pytest.mark.parametrize(
    ("kind", "query"),
    [("application/merge-patch+json", ""), ("application/apply-patch+yaml", "?fieldManager=me&force=true")],
)
async def test_patched_definition_is_checked_as_a_created_one(kind: str, query: str) -> None:
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    value = definition("ships", "Ship")
    without_schema = {"name": "v1", "served": True, "storage": True, "schema": None}
    async with api() as (client, _):
        assert (await client.post(definitions, json=value)).status_code == 201
        patch: Json = {**value, "spec": {**object_at(value, "spec"), "versions": [without_schema]}}
        answer = await client.patch(
            f"{definitions}/ships.example.io{query}",
            content=json.dumps(patch),
            headers={"content-type": kind},
        )
        assert answer.status_code == 422, answer.text
        assert (await client.get("/apis/example.io/v1/namespaces/default/ships")).status_code == 200


async def test_stricter_schema_refuses_new_faults_of_stored_objects_only() -> None:
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    path = "/apis/example.io/v1/namespaces/default/ships"
    ship = manifest("example.io/v1", "Ship", "one", spec={"size": -1, "crew": 2})
    counts = {name: {"type": "integer", "minimum": 0} for name in ("size", "crew")}
    spec: Json = {"type": "object", "properties": counts}
    async with api() as (client, _):
        made = await client.post(definitions, json=definition("ships", "Ship"))
        assert made.status_code == 201, made.text
        assert (await client.post(path, json=ship)).status_code == 201
        strict = definition("ships", "Ship", schema={"type": "object", "properties": {"spec": spec}})
        strict["metadata"] = made.json()["metadata"]
        answer = await client.put(f"{definitions}/ships.example.io", json=strict)
        assert answer.status_code == 200, answer.text
        for crew, code in ((3, 200), (-2, 422)):
            patch = {"spec": {"crew": crew}}
            answer = await client.patch(f"{path}/one", json=patch, headers=MERGE)
            assert answer.status_code == code, answer.text
        assert [cause["field"] for cause in answer.json()["details"]["causes"]] == ["spec.crew"]
