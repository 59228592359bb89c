"""Stories of names, metadata and bodies, valid and invalid."""

from typing import cast

from tests.builders.manifests import manifest
from tests.kube.oracle import objects
from tests.kube.oracle.objects import Json, config_map, deployment, named
from tests.kube.oracle.playing import MERGE, Ask
from tests.kube.oracle.stories.requests import deployments, maps, with_metadata


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
    config = config_map("one")
    for fields in (
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
        await ask("POST", f"{maps(ns)}?dryRun=All", with_metadata(config, **fields))


async def heads(ask: Ask, ns: str) -> None:
    """Bodies of another kind, and malformed ones."""
    config = config_map("one")
    bodies: tuple[object, ...] = (
        {**config, "kind": "Secret"},
        {**config, "apiVersion": "v2"},
        {**config, "apiVersion": "a/b/c"},
        {"metadata": {"name": "one"}},
        {"kind": "ConfigMap", "metadata": {"name": "one"}},
        {},
        [],
        "text",
        "{",
        "",
        "null",
        {**config, "data": {"a": 1}},
        {**config, "data": "x"},
        {**config, "binaryData": {"a": "not base64!"}},
        {**config, "immutable": "yes"},
        {**config, "metadata": "x"},
        {**config, "metadata": {"name": 5}},
    )
    for body in bodies:
        await ask("POST", f"{maps(ns)}?dryRun=All", body)
    await ask("POST", maps(ns), "a: b", "text/plain")
    await ask("POST", maps(ns), "a: [", "application/yaml")
    await ask("POST", maps(ns), "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: y}\n", "application/yaml")
    await ask("POST", f"/api/v1/namespaces/missing-{ns}/configmaps", config)
    await ask("POST", "/api/v1/configmaps", config)
    await ask("POST", f"{maps(ns)}/one", config)
    await ask("PUT", maps(ns), config)
    await ask("PATCH", maps(ns), {}, MERGE)


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
