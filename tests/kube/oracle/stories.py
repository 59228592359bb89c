"""Stories: each one is a few requests about one subject, in its own namespace."""

from typing import Final, cast

from tests.builders.manifests import manifest
from tests.kube.oracle import objects
from tests.kube.oracle.objects import Json, config_map, deployment, named, pod_template
from tests.kube.oracle.playing import APPLY, JSON_PATCH, MERGE, STRATEGIC, TABLE, Ask, Story

NOTHING: Final[Json] = {}
NO_VERBS: Final[list[str]] = []
DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def maps(ns: str) -> str:
    return f"/api/v1/namespaces/{ns}/configmaps"


def deployments(ns: str) -> str:
    return f"/apis/apps/v1/namespaces/{ns}/deployments"


def metadata_of(value: Json) -> Json:
    return cast("Json", value["metadata"])


def version_of(value: Json) -> str:
    return str(metadata_of(value)["resourceVersion"])


def with_metadata(value: Json, **metadata: object) -> Json:
    """Return the object with additional metadata."""
    return {**value, "metadata": {**metadata_of(value), **metadata}}


def of_kind(path: str, value: Json) -> Story:
    """An object of each kind is created, changed and deleted."""

    async def story(ask: Ask, ns: str) -> None:
        at = path.format(ns=ns)
        name = metadata_of(value)["name"]
        made = await ask("POST", f"{at}?fieldManager=me", value)
        await ask("POST", at, value)
        await ask("GET", f"{at}/{name}")
        await ask("GET", f"{at}/{name}", accept=TABLE)
        await ask("PUT", f"{at}/{name}?fieldManager=me", made)
        await ask("PATCH", f"{at}/{name}", {"metadata": {"labels": {"a": "b"}}}, MERGE)
        await ask("PATCH", f"{at}/{name}", {"metadata": {"annotations": {"a": "b"}}}, STRATEGIC)
        await ask("PATCH", f"{at}/{name}?fieldManager=other", value, APPLY)
        await ask("DELETE", f"{at}/{name}")
        await ask("GET", f"{at}/{name}")
        await ask("DELETE", f"{at}/{name}")

    return story


async def names(ask: Ask, ns: str) -> None:
    """Valid and invalid object names."""
    for name in ("Upper", "under_score", "-dash", "dash-", "a..b", "x" * 254, "with space", "ok.name", ""):
        await ask("POST", maps(ns), config_map(name))
    services = f"/api/v1/namespaces/{ns}/services"
    for name in ("1digit", "a.b", "x" * 64):
        await ask(
            "POST",
            services,
            {**objects.KINDS["/api/v1/namespaces/{ns}/services"], "metadata": {"name": name}},
        )
    for name in ("a.b", "Up", "x" * 64):
        await ask(
            "POST",
            "/api/v1/namespaces",
            manifest("v1", "Namespace", name),
        )
    role = objects.KINDS[f"/apis/{objects.RBAC}/namespaces/{{ns}}/roles"]
    for name in ("system:a:B", "a/b", "..", "a%b"):
        await ask("POST", f"/apis/{objects.RBAC}/namespaces/{ns}/roles", named(role, name))
    await ask("POST", deployments(ns), named(deployment("x"), "A"))
    cron = objects.KINDS["/apis/batch/v1/namespaces/{ns}/cronjobs"]
    await ask("POST", f"/apis/batch/v1/namespaces/{ns}/cronjobs", named(cron, "x" * 53))


async def generated_names(ask: Ask, ns: str) -> None:
    """Generated names."""
    value = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "made-by-prefix-"}}
    await ask("POST", maps(ns), value)
    await ask("POST", maps(ns), {**value, "metadata": {}})
    await ask("POST", maps(ns), {**value, "metadata": {"generateName": "UP-made-by-prefix-"}})
    await ask("POST", f"{maps(ns)}?dryRun=All", value)


async def metadata(ask: Ask, ns: str) -> None:
    """Valid and invalid metadata."""
    one = config_map("one")
    for held in (
        {"labels": {"a b": "c"}},
        {"labels": {"a": "b c"}},
        {"labels": {"a": "x" * 64}},
        {"labels": {"example.com/": "x", "/a": "y", "A.com/b": "z"}},
        {"labels": {"a": 1}},
        {"labels": ["a"]},
        {"annotations": {"a b": "c"}},
        {"annotations": {"UP.example.com/a": "any thing"}},
        {"annotations": {"big": "x" * 262_145}},
        {"finalizers": ["short"]},
        {"finalizers": ["a b/c"]},
        {"finalizers": [1]},
        {"ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "x"}]},
        {"ownerReferences": [{"apiVersion": "v1", "kind": "Event", "name": "x", "uid": "u"}]},
        {
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "u", "controller": True},
                {"apiVersion": "v1", "kind": "ConfigMap", "name": "y", "uid": "v", "controller": True},
            ]
        },
        {"namespace": "another"},
        {"resourceVersion": "5"},
        {"uid": "3f9e1d7e-0000-4000-8000-000000000000", "generation": 7, "selfLink": "/x"},
        {"creationTimestamp": "2020-01-01T00:00:00Z", "deletionTimestamp": "2020-01-01T00:00:00Z"},
        {"creationTimestamp": "yesterday"},
        {"managedFields": [{"manager": "a", "operation": "Other"}]},
        {"clusterName": "x"},
        {"name": "one", "generateName": "UPPER-"},
    ):
        await ask("POST", f"{maps(ns)}?dryRun=All", with_metadata(one, **held))


async def heads(ask: Ask, ns: str) -> None:
    """Bodies of another kind, and malformed ones."""
    one = config_map("one")
    bodies: tuple[object, ...] = (
        {**one, "kind": "Secret"},
        {**one, "apiVersion": "v2"},
        {**one, "apiVersion": "a/b/c"},
        {"metadata": {"name": "one"}},
        {"kind": "ConfigMap", "metadata": {"name": "one"}},
        {},
        [],
        "text",
        "{",
        "",
        "null",
        {**one, "data": {"a": 1}},
        {**one, "data": "x"},
        {**one, "binaryData": {"a": "not base64!"}},
        {**one, "immutable": "yes"},
        {**one, "metadata": "x"},
        {**one, "metadata": {"name": 5}},
    )
    for body in bodies:
        await ask("POST", f"{maps(ns)}?dryRun=All", body)
    await ask("POST", maps(ns), "a: b", "text/plain")
    await ask("POST", maps(ns), "a: [", "application/yaml")
    await ask("POST", maps(ns), "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: y}\n", "application/yaml")
    await ask("POST", f"/api/v1/namespaces/missing-{ns}/configmaps", one)
    await ask("POST", "/api/v1/configmaps", one)
    await ask("POST", f"{maps(ns)}/one", one)
    await ask("PUT", maps(ns), one)
    await ask("PATCH", maps(ns), {}, MERGE)


async def replacing(ask: Ask, ns: str) -> None:
    """PUT, with versions and without."""
    at = f"{maps(ns)}/one"
    await ask("PUT", at, config_map("one"))
    made = await ask("POST", maps(ns), config_map("one", a="1"))
    await ask("PUT", at, config_map("one", a="2"))
    await ask("PUT", at, {**made, "data": {"a": "3"}})
    await ask("PUT", at, with_metadata(config_map("one"), uid="3f9e1d7e-0000-4000-8000-000000000000"))
    await ask("PUT", at, with_metadata(config_map("one"), resourceVersion="x"))
    await ask("PUT", at, with_metadata(config_map("one"), resourceVersion="99999999"))
    await ask("PUT", at, config_map("two"))
    await ask("PUT", at, config_map(""))
    await ask("PUT", at, with_metadata(config_map("one"), namespace="other"))
    await ask("PUT", at, {**config_map("one"), "kind": "Secret"})
    await ask("PUT", f"{at}?dryRun=All", config_map("one", a="9"))
    await ask("PUT", f"{at}?dryRun=Some", config_map("one", a="9"))
    await ask("PUT", f"{at}?fieldManager={'x' * 129}", config_map("one", a="9"))
    await ask("PUT", f"{at}?fieldValidation=Other", config_map("one", a="9"))
    await ask("PUT", at, {**config_map("one", a="5"), "immutable": True})
    await ask("PUT", at, {**config_map("one", a="6"), "immutable": True})
    await ask("PUT", at, config_map("one", a="5"))


async def json_patches(ask: Ask, ns: str) -> None:
    """Applicable and inapplicable JSON patches."""
    at = f"{deployments(ns)}/one"
    await ask("POST", deployments(ns), deployment("one"))
    for patch in (
        [{"op": "replace", "path": "/spec/replicas", "value": 3}],
        [{"op": "test", "path": "/spec/replicas", "value": 4}],
        [{"op": "test", "path": "/spec/replicas", "value": 3}],
        [{"op": "remove", "path": "/spec/nothing"}],
        [{"op": "replace", "path": "/spec/nothing", "value": 1}],
        [{"op": "add", "path": "/spec/nothing/below", "value": 1}],
        [{"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}],
        [{"op": "add", "path": "/metadata/labels/c", "value": "d"}],
        [{"op": "copy", "from": "/metadata/labels/c", "path": "/metadata/labels/e"}],
        [{"op": "move", "from": "/metadata/labels/c", "path": "/metadata/labels/f"}],
        [{"op": "add", "path": "/spec/template/spec/containers/-", "value": {"name": "b", "image": "b"}}],
        [{"op": "remove", "path": "/spec/template/spec/containers/7"}],
        [{"op": "other", "path": "/spec"}],
        [{"op": "replace", "path": "/metadata/name", "value": "two"}],
        [{"op": "replace", "path": "/kind", "value": "Other"}],
        [{"op": "replace", "path": "/spec/replicas", "value": "many"}],
        [{"op": "replace", "path": "/spec/replicas", "value": -1}],
        [{"op": "add", "path": "/spec/unknown", "value": 1}],
        {"op": "remove", "path": "/spec"},
        [],
        "[",
        [{"op": "replace", "path": "/metadata/resourceVersion", "value": "1"}],
    ):
        await ask("PATCH", at, patch, JSON_PATCH)
    await ask("PATCH", f"{deployments(ns)}/none", [], JSON_PATCH)
    await ask("PATCH", at, {}, "application/json")
    await ask("PATCH", at, {}, "text/plain")
    await ask("PATCH", f"{at}?force=true", {}, MERGE)


async def merge_patches(ask: Ask, ns: str) -> None:
    """Merge patches."""
    at = f"{deployments(ns)}/one"
    made = await ask("POST", deployments(ns), deployment("one"))
    patches: tuple[object, ...] = (
        {"spec": {"replicas": 3}},
        {"spec": {"replicas": 3}},
        {"spec": {"replicas": None}},
        {"spec": {"template": {"spec": {"containers": [{"name": "b", "image": "b"}]}}}},
        {"spec": {"paused": True}, "status": {"replicas": 9}},
        {"metadata": {"resourceVersion": version_of(made)}},
        {"metadata": {"uid": "other"}},
        {"metadata": {"name": "two"}},
        {"metadata": {"generation": 40, "creationTimestamp": None}},
        {"metadata": None},
        {"spec": None},
        {"spec": {"unknown": 1}},
        [],
        "{",
        "null",
    )
    for patch in patches:
        await ask("PATCH", at, patch, MERGE)
    await ask("PATCH", f"{at}?dryRun=All", {"spec": {"replicas": 8}}, MERGE)
    await ask("PATCH", f"{at}?fieldValidation=Strict", {"spec": {"unknown": 1}}, MERGE)
    await ask("GET", at)


async def strategic_patches(ask: Ask, ns: str) -> None:
    """Strategic merge patches, with their directives."""
    at = f"{deployments(ns)}/one"
    await ask("POST", deployments(ns), deployment("one"))

    def of_pod(**spec: object) -> Json:
        return {"spec": {"template": {"spec": spec}}}

    for patch in (
        of_pod(
            containers=[
                {"name": "main", "env": [{"name": "A", "value": "1"}], "ports": [{"containerPort": 80}]}
            ]
        ),
        of_pod(containers=[{"name": "side", "image": "side"}]),
        of_pod(**{"$setElementOrder/containers": [{"name": "side"}, {"name": "main"}]}),
        of_pod(containers=[{"$patch": "delete", "name": "side"}]),
        of_pod(containers=[{"name": "main", "env": [{"name": "A", "$patch": "delete"}]}]),
        of_pod(containers=[{"image": "no-name"}]),
        of_pod(containers=[{"$patch": "other", "name": "main"}]),
        of_pod(containers="x"),
        of_pod(volumes=[{"name": "v", "emptyDir": NOTHING}]),
        of_pod(volumes=[{"name": "v", "$retainKeys": ["name", "configMap"], "configMap": {"name": "c"}}]),
        of_pod(volumes=[{"$patch": "replace"}, {"name": "w", "emptyDir": NOTHING}]),
        of_pod(tolerations=[{"key": "a", "operator": "Exists"}]),
        of_pod(tolerations=[{"key": "b", "operator": "Exists"}]),
        of_pod(nodeSelector={"$patch": "replace", "a": "b"}),
        of_pod(nodeSelector={"a": None}),
        {"metadata": {"finalizers": ["example.com/a"]}},
        {"metadata": {"finalizers": ["example.com/b"]}},
        {
            "metadata": {
                "$deleteFromPrimitiveList/finalizers": ["example.com/a", "example.com/b"],
                "$setElementOrder/finalizers": [],
            }
        },
        {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}},
        {"spec": {"replicas": "three"}},
        {"spec": {"unknown": 1}},
        {"$patch": "replace", "metadata": {"name": "one"}, "spec": deployment("one")["spec"]},
    ):
        await ask("PATCH", at, patch, STRATEGIC)


async def applying(ask: Ask, ns: str) -> None:
    """Server-side apply: shared, conflicting and released fields."""
    at = f"{deployments(ns)}/one"
    mine = deployment("one")
    await ask("PATCH", f"{at}?fieldManager=a", mine, APPLY)
    await ask("PATCH", f"{at}?fieldManager=a", mine, APPLY)
    await ask("PATCH", f"{at}?fieldManager=b", mine, APPLY)
    await ask("PATCH", f"{at}?fieldManager=b", deployment("one", replicas=5), APPLY)
    await ask("PATCH", f"{at}?fieldManager=b&force=true", deployment("one", replicas=5), APPLY)
    head = manifest("apps/v1", "Deployment", "one")
    await ask("PATCH", f"{at}?fieldManager=b", head, APPLY)
    await ask("PATCH", at, {"spec": {"replicas": 7}}, MERGE)
    await ask("PATCH", f"{at}?fieldManager=a", mine, APPLY)
    await ask("PATCH", f"{at}?fieldManager=a&force=true", mine, APPLY)
    without = {
        **mine,
        "spec": {key: item for key, item in cast("Json", mine["spec"]).items() if key != "replicas"},
    }
    await ask("PATCH", f"{at}?fieldManager=a", without, APPLY)
    labelled = with_metadata(without, labels={"x": "1", "y": "2"})
    await ask("PATCH", f"{at}?fieldManager=a", labelled, APPLY)
    await ask("PATCH", f"{at}?fieldManager=a", with_metadata(without, labels={"x": "1"}), APPLY)
    await ask("PATCH", at, without, APPLY)
    await ask("PATCH", f"{at}?fieldManager=a", with_metadata(without, managedFields=[NOTHING]), APPLY)
    await ask("PATCH", f"{at}?fieldManager=a", with_metadata(without, resourceVersion="1"), APPLY)
    await ask("PATCH", f"{at}?fieldManager=a", with_metadata(without, name="two"), APPLY)
    await ask("PATCH", f"{at}?fieldManager=a", {**without, "kind": "Other"}, APPLY)
    await ask("PATCH", f"{at}?fieldManager=a", {"metadata": {"name": "one"}}, APPLY)
    await ask("PATCH", f"{at}?fieldManager=a", "a: [", APPLY)
    await ask("PATCH", f"{at}?fieldManager=a&fieldValidation=Strict", {**without, "other": 1}, APPLY)
    await ask("PATCH", f"{at}?fieldManager=a", {**without, "other": 1}, APPLY)
    await ask("PATCH", f"{at}?fieldManager=a", deployment("one", replicas="x"), APPLY)
    await ask("PATCH", f"{at}?fieldManager=a&dryRun=All", deployment("one", replicas=9), APPLY)
    twice = pod_template("one")
    cast("Json", twice["spec"])["containers"] = [{"name": "m", "image": "a"}, {"name": "m", "image": "b"}]
    await ask("PATCH", f"{at}?fieldManager=a&force=true", deployment("one", template=twice), APPLY)
    await ask("PATCH", f"{at}?fieldManager=c", {**head, "status": {"replicas": 3}}, APPLY)
    await ask("PATCH", f"{at}/status?fieldManager=c", {**head, "status": {"replicas": 3}}, APPLY)
    await ask("PATCH", f"{at}/status?fieldManager=d", {**head, "status": {"replicas": 4}}, APPLY)
    await ask("PATCH", f"{at}/status?fieldManager=d&force=true", {**head, "status": {"replicas": 4}}, APPLY)
    scale: Json = manifest("autoscaling/v1", "Scale", "one")
    await ask("PATCH", f"{at}/scale?fieldManager=s", {**scale, "spec": {"replicas": 6}}, APPLY)
    await ask("PATCH", f"{at}/scale?fieldManager=t", {**scale, "spec": {"replicas": 7}}, APPLY)
    await ask("GET", at)
    await ask("PUT", f"{at}?fieldManager=e", with_metadata(mine, managedFields=[]))
    await ask("PATCH", at, [{"op": "replace", "path": "/metadata/managedFields", "value": [{}]}], JSON_PATCH)
    await ask("DELETE", at)


async def deleting(ask: Ask, ns: str) -> None:
    """Deletions: preconditions, policies, finalizers."""
    at = f"{maps(ns)}/one"
    made = await ask("POST", maps(ns), config_map("one"))
    other = "3f9e1d7e-0000-4000-8000-000000000000"
    await ask("DELETE", at, {"preconditions": {"uid": other}})
    await ask("DELETE", at, {"preconditions": {"resourceVersion": "1"}})
    await ask("DELETE", at, {"propagationPolicy": "Other"})
    await ask("DELETE", at, {"propagationPolicy": "Orphan", "orphanDependents": True})
    await ask("DELETE", at, {"gracePeriodSeconds": -5})
    await ask("DELETE", at, {"dryRun": ["Some"]})
    await ask("DELETE", at, {"kind": "Other"})
    await ask("DELETE", at, "{")
    await ask("DELETE", f"{at}?dryRun=All")
    await ask("DELETE", at, {"preconditions": {"uid": metadata_of(made)["uid"]}})
    made = await ask("POST", maps(ns), with_metadata(config_map("one"), finalizers=["example.com/hold"]))
    await ask("DELETE", at)
    await ask("DELETE", at)
    await ask("PATCH", at, {"metadata": {"finalizers": ["example.com/hold", "example.com/more"]}}, MERGE)
    await ask("PATCH", at, {"metadata": {"deletionTimestamp": None}}, MERGE)
    await ask("PATCH", at, {"data": {"still": "here"}}, MERGE)
    await ask("POST", maps(ns), config_map("one"))
    await ask("GET", at, accept=TABLE)
    await ask("PATCH", at, {"metadata": {"finalizers": None}}, MERGE)
    await ask("GET", at)
    for policy in ("Foreground", "Orphan", "Background"):
        await ask("POST", deployments(ns), deployment("one"))
        await ask("DELETE", f"{deployments(ns)}/one", {"propagationPolicy": policy})
        await ask("PATCH", f"{deployments(ns)}/one", {"metadata": {"finalizers": None}}, MERGE)
    await ask("DELETE", f"{maps(ns)}/none")
    await ask("DELETE", "/api/v1/namespaces/default?dryRun=All")
    await ask("DELETE", "/api/v1/namespaces/none")


async def deleting_many(ask: Ask, ns: str) -> None:
    """Collections."""
    for name, tier in (("a", "x"), ("b", "x"), ("c", "y")):
        await ask("POST", maps(ns), with_metadata(config_map(name), labels={"tier": tier}))
    await ask("DELETE", f"{maps(ns)}?labelSelector=tier%3Dx&dryRun=All")
    await ask("DELETE", f"{maps(ns)}?labelSelector=tier%3Dx")
    await ask("GET", maps(ns))
    await ask("DELETE", f"{maps(ns)}?fieldSelector=metadata.name%3Dnone")
    await ask("DELETE", maps(ns), {"propagationPolicy": "Other"})
    await ask("DELETE", maps(ns))
    await ask("DELETE", maps(ns))


async def fields(ask: Ask, ns: str) -> None:
    """Unknown fields, duplicate fields, and values of a wrong type."""
    at = deployments(ns)
    odd = {**deployment("one", unknown=1), "more": {"a": 1}}
    pod = cast("Json", cast("Json", cast("Json", odd["spec"])["template"])["spec"])
    pod["containers"] = [{"name": "main", "image": "a", "imag": "b"}]
    twice = (
        '{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"one","name":"one"},'
        '"spec":{"replicas":1,"replicas":2,"selector":{"matchLabels":{"app":"one"}},"template":'
        '{"metadata":{"labels":{"app":"one"}},"spec":{"containers":[{"name":"a","image":"b","image":"c"}]}}}}'
    )
    for how in ("Strict", "Warn", "Ignore", ""):
        await ask("POST", f"{at}?dryRun=All&fieldValidation={how}", odd)
        await ask("POST", f"{at}?dryRun=All&fieldValidation={how}", twice)
    yaml = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: y}\ndata: {a: b, a: c}\nother: 1\n"
    for how in ("Strict", "Warn"):
        await ask("POST", f"{maps(ns)}?dryRun=All&fieldValidation={how}", yaml, "application/yaml")
    for wrong in (
        deployment("one", replicas="2"),
        deployment("one", replicas=1.5),
        deployment("one", replicas=2**40),
        deployment("one", paused="yes"),
        deployment("one", selector=[]),
        deployment("one", template="x"),
        deployment("one", strategy={"rollingUpdate": {"maxSurge": True}}),
        deployment("one", Replicas=3),
        {**deployment("one"), "spec": None},
        {**deployment("one"), "spec": 5},
    ):
        await ask("POST", f"{at}?dryRun=All&fieldValidation=Strict", wrong)


async def scaling(ask: Ask, ns: str) -> None:
    """The scale of a Deployment."""
    at = f"{deployments(ns)}/one"
    await ask("GET", f"{at}/scale")
    await ask("POST", deployments(ns), deployment("one"))
    scale = await ask("GET", f"{at}/scale")
    await ask("PUT", f"{at}/scale", {**scale, "spec": {"replicas": 4}})
    await ask("PUT", f"{at}/scale", {**scale, "spec": {"replicas": 5}})
    await ask("PATCH", f"{at}/scale", {"spec": {"replicas": 6}}, MERGE)
    await ask("PATCH", f"{at}/scale", {"spec": {"replicas": 6}}, STRATEGIC)
    await ask("PATCH", f"{at}/scale", [{"op": "replace", "path": "/spec/replicas", "value": 7}], JSON_PATCH)
    await ask("PATCH", f"{at}/scale", {"spec": {"replicas": -1}}, MERGE)
    await ask("PATCH", f"{at}/scale", {"spec": {"replicas": "x"}}, MERGE)
    await ask("PATCH", f"{at}/scale", {"metadata": {"name": "two"}}, MERGE)
    await ask("PATCH", f"{at}/scale?dryRun=All", {"spec": {"replicas": 9}}, MERGE)
    await ask("PUT", f"{at}/scale", {"kind": "Scale", "apiVersion": "autoscaling/v1", "spec": {}})
    await ask("PUT", f"{at}/scale", deployment("one"))
    await ask("GET", at)
    await ask("POST", f"{at}/scale", {})
    await ask("DELETE", f"{at}/scale")
    await ask("GET", f"{maps(ns)}/one/scale")
    await ask("GET", f"{at}/other")


async def writing_statuses(ask: Ask, ns: str) -> None:
    """The status of a Deployment."""
    at = f"{deployments(ns)}/one"
    made = await ask(
        "POST", f"{deployments(ns)}?fieldManager=me", {**deployment("one"), "status": {"replicas": 9}}
    )
    await ask(
        "PUT", f"{at}/status?fieldManager=me", {**made, "status": {"replicas": 2, "observedGeneration": 1}}
    )
    await ask("PATCH", f"{at}/status", {"status": {"readyReplicas": 1}, "spec": {"replicas": 9}}, MERGE)
    await ask("PATCH", f"{at}/status", {"metadata": {"labels": {"a": "b"}}}, MERGE)
    await ask("PATCH", f"{at}/status", {"status": {"readyReplicas": -1}}, MERGE)
    await ask("PATCH", f"{at}/status", {"status": {"readyReplicas": 5}}, MERGE)
    await ask("PATCH", f"{at}/status", {"status": {"unknown": 5}}, MERGE)
    await ask("PATCH", f"{at}/status", {"status": "x"}, MERGE)
    await ask("GET", f"{at}/status")
    await ask("GET", at, accept=TABLE)
    await ask("PATCH", at, {"status": {"replicas": 7}}, MERGE)
    await ask("PUT", f"{at}/status", deployment("two"))
    await ask("PATCH", f"{at}/status", {"status": None}, MERGE)
