"""Stories about lists, watches, custom kinds, paths and authorization."""

import asyncio
from typing import cast

from tests.builders.manifests import manifest
from tests.kube.oracle import objects
from tests.kube.oracle.objects import Json, config_map, deployment, gadget, named
from tests.kube.oracle.playing import APPLY, MERGE, STRATEGIC, TABLE, Ask
from tests.kube.oracle.stories.requests import (
    DEFINITIONS,
    NO_VERBS,
    NOTHING,
    deployments,
    maps,
    metadata_of,
    version_of,
    with_metadata,
)


async def selectors(ask: Ask, ns: str) -> None:
    """Lists by label and field selectors."""
    at = maps(ns)
    for name, labels in (("a", {"tier": "x"}), ("b", {"tier": "y", "old": ""}), ("c", {})):
        await ask("POST", at, with_metadata(config_map(name), labels=labels))
    for text in (
        "tier=x",
        "tier==x",
        "tier!=x",
        "tier in (x,y)",
        "tier notin (x)",
        "tier",
        "!tier",
        "old=",
        "tier=x,old",
        "tier in ()",
        "tier in (x",
        "=x",
        "tier=x y",
        "tier=%",
        "tier>1",
        "tier>x",
        "a/b/c=d",
        "Tier in x",
        ",",
    ):
        await ask("GET", f"{at}?labelSelector={quoted(text)}")
    for text in (
        "metadata.name=a",
        "metadata.name!=a",
        f"metadata.namespace={ns}",
        "metadata.name=a,metadata.name=b",
        "spec.other=1",
        "metadata.name",
        "metadata.labels.tier=x",
        "data.a=1",
    ):
        await ask("GET", f"{at}?fieldSelector={quoted(text)}")
    secrets, pods = f"/api/v1/namespaces/{ns}/secrets", f"/api/v1/namespaces/{ns}/pods"
    await ask("POST", secrets, objects.KINDS["/api/v1/namespaces/{ns}/secrets"])
    await ask("GET", f"{secrets}?fieldSelector=type%3DOpaque")
    await ask("GET", f"{secrets}?fieldSelector=type%3DOther")
    await ask("GET", f"{pods}?fieldSelector=spec.nodeName%3Dx,status.phase%3DRunning")
    await ask("GET", f"{deployments(ns)}?fieldSelector=status.replicas%3D1")
    await ask("GET", f"/apis/batch/v1/namespaces/{ns}/jobs?fieldSelector=status.successful%3D1")
    await ask("GET", f"/api/v1/namespaces/{ns}/services?fieldSelector=spec.type%3DClusterIP")
    await ask("GET", f"/api/v1/namespaces?fieldSelector=metadata.name%3D{ns},status.phase%3DActive")


def quoted(text: str) -> str:
    return (
        text.replace("%", "%25")
        .replace("=", "%3D")
        .replace(" ", "%20")
        .replace("!", "%21")
        .replace(">", "%3E")
    )


async def pages(ask: Ask, ns: str) -> None:
    """Paged lists, and snapshots at a resourceVersion."""
    at = maps(ns)
    made: Json = {}
    for name in "abcd":
        made = await ask("POST", at, config_map(name))
    first = await ask("GET", f"{at}?limit=3")
    token = metadata_of(first).get("continue", "")
    await ask("GET", f"{at}?limit=3&continue={token}")
    await ask("GET", f"{at}?limit=4")
    await ask("GET", f"{at}?limit=3", accept=TABLE)
    await ask("GET", f"{at}?limit=2&labelSelector=none")
    await ask("GET", f"{at}?continue=nonsense")
    await ask("GET", f"{at}?limit=-1")
    await ask("GET", f"{at}?limit=x")
    await ask("GET", f"{at}?resourceVersion=x")
    await ask("GET", f"{at}?resourceVersion=0&limit=1")
    await ask("GET", f"{at}?resourceVersion={version_of(made)}&resourceVersionMatch=NotOlderThan")
    await ask("GET", f"{at}?resourceVersion={version_of(made)}&resourceVersionMatch=Exact")
    await ask("GET", f"{at}?resourceVersionMatch=Exact")
    await ask("GET", f"{at}?resourceVersion=5&resourceVersionMatch=Other")
    await ask("GET", f"{at}?resourceVersion=0&resourceVersionMatch=Exact")
    await ask("GET", f"{at}?continue={token}&resourceVersion=5")
    await ask("GET", f"{at}?sendInitialEvents=true")
    await ask("GET", f"{at}?timeoutSeconds=x")
    await ask("GET", f"{at}/a?resourceVersion=0")
    await ask("GET", f"{at}?pretty=true&limit=1")


async def watching(ask: Ask, ns: str) -> None:
    """Watches: from a version, as tables, with a selector, from the start."""
    at = maps(ns)
    first = await ask("POST", at, with_metadata(config_map("a"), labels={"tier": "x"}))
    await ask("PATCH", f"{at}/a", {"data": {"a": "1"}}, MERGE)
    await ask("PATCH", f"{at}/a", {"metadata": {"labels": {"tier": "y"}}}, MERGE)
    await ask("PATCH", f"{at}/a", {"metadata": {"labels": {"tier": "x"}}}, MERGE)
    await ask("POST", at, config_map("b"))
    await ask("DELETE", f"{at}/a")
    since = f"{at}?watch=1&timeoutSeconds=1&resourceVersion={version_of(first)}"
    await ask("GET", since)
    await ask("GET", f"{since}&labelSelector=tier%3Dx")
    await ask("GET", f"{since}&fieldSelector=metadata.name%3Db", accept=TABLE)
    await ask("GET", f"{at}?watch=1&timeoutSeconds=1")
    await ask("GET", f"{at}?watch=1&timeoutSeconds=1&resourceVersion=0")
    begin = "watch=1&timeoutSeconds=1&sendInitialEvents=true&allowWatchBookmarks=true"
    await ask("GET", f"{at}?{begin}&resourceVersionMatch=NotOlderThan")
    await ask("GET", f"{at}?{begin}")
    await ask("GET", f"{at}?{begin}&resourceVersionMatch=Exact&resourceVersion=1")
    await ask("GET", f"{at}?watch=1&timeoutSeconds=1&resourceVersion=x")
    await ask("GET", f"{at}?watch=1&timeoutSeconds=1&resourceVersionMatch=NotOlderThan")
    await ask("GET", f"{at}?watch=1&timeoutSeconds=1&fieldSelector=spec.other%3D1")
    await ask("GET", f"{at}/b?watch=1&timeoutSeconds=1")


async def custom_kinds(ask: Ask, ns: str) -> None:
    """A custom kind: schema, defaults, pruning, columns, status, scale."""
    await ask("POST", DEFINITIONS, objects.definition())
    at = f"/apis/{objects.GADGET_VERSION}/namespaces/{ns}/gadgets"
    for _ in range(50):
        if "items" in await ask("GET", at, quiet=True):
            break
        await asyncio.sleep(0.2)
    await ask("GET", at)
    await ask("POST", at, gadget("one", parts=[{"name": "a"}], unknown=1))
    await ask("POST", f"{at}?fieldValidation=Strict", gadget("two", unknown=1, parts=[{"name": "a", "b": 1}]))
    await ask("POST", f"{at}?fieldValidation=Ignore&dryRun=All", gadget("two", unknown=1))
    for wrong in (
        gadget("two", size=0),
        gadget("two", size=11),
        gadget("two", size="x"),
        gadget("two", size=None),
        gadget("two", color="green"),
        gadget("two", color=None),
        gadget("two", code="ABC"),
        gadget("two", code="abcdefgh"),
        gadget("two", parts=[{"weight": 1}]),
        gadget("two", parts=[{"name": "a"}, {"name": "a"}]),
        gadget("two", parts=[{"name": name} for name in "abcd"]),
        gadget("two", tags=["a", "a"]),
        gadget("two", port="http"),
        gadget("two", port=1.5),
        gadget("two", free={"any": {"thing": [1]}}, options={"a": "b"}),
        gadget("two", options={"a": 1}),
        gadget("two", size=0, color="green"),
        manifest(objects.GADGET_VERSION, "Gadget", "two"),
        {**gadget("two"), "spec": "x"},
        manifest("shop.example.com/v2", "Gadget", "two", spec={}),
        {"metadata": {"name": "two"}, "spec": {"size": 1}},
        with_metadata(gadget("Two"), labels={"a b": "c"}),
    ):
        await ask("POST", f"{at}?dryRun=All", wrong)
    await ask("PATCH", f"{at}/one", {"spec": {"size": 3}}, MERGE)
    await ask("PATCH", f"{at}/one", {"spec": {"size": 3}}, STRATEGIC)
    await ask("PATCH", f"{at}/one", {"spec": {"color": None}}, MERGE)
    await ask("PATCH", f"{at}/one", {"spec": {"size": 99}}, MERGE)
    await ask("PATCH", f"{at}/one", {"status": {"phase": "Up"}}, MERGE)
    await ask("PATCH", f"{at}/one/status", {"status": {"phase": "Up", "replicas": 2}}, MERGE)
    await ask("PATCH", f"{at}/one/status", {"status": {"phase": 5}}, MERGE)
    await ask("GET", f"{at}/one", accept=TABLE)
    await ask("GET", f"{at}/one/scale")
    await ask("PATCH", f"{at}/one/scale", {"spec": {"replicas": 4}}, MERGE)
    await ask("PATCH", f"{at}/one/scale", {"spec": {"replicas": -4}}, MERGE)
    await ask("PATCH", f"{at}/one?fieldManager=a", gadget("one", parts=[{"name": "b"}]), APPLY)
    await ask("PATCH", f"{at}/one?fieldManager=a&force=true", gadget("one", parts=[{"name": "b"}]), APPLY)
    await ask("PATCH", f"{at}/one?fieldManager=b&force=true", gadget("one", parts=[{"name": "c"}]), APPLY)
    await ask("PATCH", f"{at}/one?fieldManager=b", gadget("one", nothing=1), APPLY)
    await ask("GET", f"{at}?fieldSelector=spec.size%3D3")
    await ask("GET", f"{at}?fieldSelector=metadata.name%3Done", accept=TABLE)
    stored = await ask("GET", f"{at}/one")
    await ask("PUT", f"{at}/one", {key: item for key, item in stored.items() if key != "spec"})
    await ask("PUT", f"{at}/one", gadget("one"))
    await ask("DELETE", f"{at}/one")
    await ask("DELETE", at)


async def definitions(ask: Ask, _ns: str) -> None:
    """Invalid definitions of kinds."""
    good = objects.definition("widgets", "Widget")
    spec = cast("Json", good["spec"])
    version = cast("list[Json]", spec["versions"])[0]

    def of(**changed: object) -> Json:
        return {**good, "spec": {**spec, **changed}}

    def schema(value: object) -> Json:
        return of(versions=[{**version, "schema": {"openAPIV3Schema": value}}])

    for body in (
        named(good, "other.shop.example.com"),
        named(good, "widgets"),
        of(group="Shop"),
        of(group=""),
        of(scope="Other"),
        of(names={"plural": "Widgets", "kind": "Widget"}),
        of(names={"plural": "widgets"}),
        of(names={"plural": "widgets", "kind": "widget gadget"}),
        of(versions=[]),
        of(versions=[{**version, "storage": False}]),
        of(versions=[version, version]),
        of(versions=[version, {**version, "name": "v2"}]),
        of(versions=[{**version, "name": "V1"}]),
        of(versions=[{"name": "v1", "served": True, "storage": True}]),
        schema({}),
        schema({"type": "string"}),
        schema({"type": "object", "properties": {"spec": {}}}),
        schema({"type": "object", "properties": {"spec": {"type": "other"}}}),
        schema({"type": "object", "properties": {"spec": {"type": "array"}}}),
        schema({"type": "object", "properties": {"a": {"type": "string", "pattern": "("}}}),
        schema({"type": "object", "properties": {"a": {"type": "integer", "default": "x"}}}),
        schema(
            {
                "type": "object",
                "properties": {"metadata": {"type": "object", "properties": {"a": {"type": "string"}}}},
            }
        ),
        of(versions=[{**version, "subresources": {"scale": NOTHING}}]),
        of(
            versions=[
                {**version, "additionalPrinterColumns": [{"name": "A", "type": "text", "jsonPath": ".x"}]}
            ]
        ),
        of(
            versions=[
                {**version, "additionalPrinterColumns": [{"name": "A", "type": "string", "jsonPath": "x["}]}
            ]
        ),
        of(preserveUnknownFields=True),
        of(conversion={"strategy": "Other"}),
    ):
        await ask("POST", f"{DEFINITIONS}?dryRun=All", body)


async def namespaces(ask: Ask, ns: str) -> None:
    """Namespaces."""
    await ask("GET", f"/api/v1/namespaces/{ns}")
    await ask("GET", f"/api/v1/namespaces/{ns}", accept=TABLE)
    await ask("GET", "/api/v1/namespaces/missing/configmaps")
    await ask("GET", "/api/v1/namespaces/missing/configmaps/one")
    await ask("POST", "/apis/apps/v1/namespaces/missing/deployments", deployment("one"))
    await ask("PATCH", "/api/v1/namespaces/missing/configmaps/a?fieldManager=a", config_map("a"), APPLY)
    await ask("PATCH", f"/api/v1/namespaces/{ns}", {"spec": {"finalizers": []}}, MERGE)
    await ask("PATCH", f"/api/v1/namespaces/{ns}", {"metadata": {"labels": {"team": "a"}}}, STRATEGIC)
    await ask(
        "PATCH",
        f"/api/v1/namespaces/{ns}",
        {"metadata": {"labels": {"kubernetes.io/metadata.name": "x"}}},
        MERGE,
    )
    await ask("POST", "/api/v1/namespaces", manifest("v1", "Namespace", ns))


async def paths(ask: Ask, ns: str) -> None:
    """Unknown paths, and unsupported methods."""
    for path in (
        "/apis/none/v1",
        "/apis/apps/v2/deployments",
        f"/apis/apps/v1/namespaces/{ns}/none",
        f"/apis/apps/v1/namespaces/{ns}/deployments/none",
        f"/apis/apps/v1/namespaces/{ns}/deployments/none/status",
        f"/apis/apps/v1/namespaces/{ns}/deployments/none/scale",
        "/api/v1/none",
        "/none",
        "/api/v2",
        f"/api/v1/namespaces/{ns}/nodes",
        "/api/v1/nodes/none",
    ):
        await ask("GET", path)
    await ask("POST", f"/api/v1/namespaces/{ns}", {})
    await ask("DELETE", "/api/v1/namespaces")
    await ask("PUT", f"{maps(ns)}", {})
    await ask("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews?dryRun=All", {})
    await ask("GET", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews")
    await ask("GET", maps(ns), accept="text/html")
    await ask("GET", maps(ns), accept="application/json;as=Other;v=v1;g=meta.k8s.io")
    await ask(
        "GET", f"{maps(ns)}/none", accept="application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
    )


async def reviews(ask: Ask, ns: str) -> None:
    """Access reviews."""
    group = "authorization.k8s.io/v1"
    at = f"/apis/{group}"
    act: Json = {"namespace": ns, "verb": "get", "resource": "pods"}

    def of(kind: str, **spec: object) -> Json:
        return {"apiVersion": group, "kind": kind, "spec": spec}

    review = of("SelfSubjectAccessReview", resourceAttributes=act)
    await ask("POST", f"{at}/selfsubjectaccessreviews", review)
    await ask("POST", f"{at}/selfsubjectaccessreviews", of("SelfSubjectAccessReview"))
    path = {"path": "/healthz", "verb": "get"}
    await ask(
        "POST", f"{at}/selfsubjectaccessreviews", of("SelfSubjectAccessReview", nonResourceAttributes=path)
    )
    await ask(
        "POST",
        f"{at}/selfsubjectaccessreviews",
        of("SelfSubjectAccessReview", nonResourceAttributes=path, resourceAttributes=act),
    )
    await ask(
        "POST", f"{at}/subjectaccessreviews", of("SubjectAccessReview", user="nobody", resourceAttributes=act)
    )
    await ask("POST", f"{at}/subjectaccessreviews", of("SubjectAccessReview", resourceAttributes=act))
    await ask(
        "POST",
        f"{at}/namespaces/{ns}/localsubjectaccessreviews",
        of("LocalSubjectAccessReview", user="nobody", resourceAttributes={**act, "namespace": "other"}),
    )
    await ask("POST", f"{at}/selfsubjectrulesreviews", of("SelfSubjectRulesReview", namespace=ns))
    await ask("POST", f"{at}/selfsubjectrulesreviews", of("SelfSubjectRulesReview"))


async def rights(ask: Ask, ns: str) -> None:
    """Invalid roles and bindings."""
    roles, bindings = (
        f"/apis/{objects.RBAC}/namespaces/{ns}/{plural}" for plural in ("roles", "rolebindings")
    )
    head: Json = {"apiVersion": objects.RBAC, "metadata": {"name": "one"}}
    listed: tuple[object, ...] = (
        [{"verbs": NO_VERBS}],
        [{"verbs": ["get"]}],
        [{"verbs": ["get"], "apiGroups": [""], "resources": NO_VERBS}],
        [{"verbs": ["get"], "nonResourceURLs": ["/healthz"]}],
        NO_VERBS,
    )
    for rules in listed:
        await ask("POST", f"{roles}?dryRun=All", {**head, "kind": "Role", "rules": rules})
    good = objects.KINDS[f"/apis/{objects.RBAC}/namespaces/{{ns}}/rolebindings"]
    ref = cast("Json", good["roleRef"])
    for changed in (
        {"roleRef": {**ref, "kind": "Other"}},
        {"roleRef": {**ref, "name": ""}},
        {"roleRef": {**ref, "apiGroup": "x"}},
        {"roleRef": None},
        {"subjects": [{"kind": "Other", "name": "x"}]},
        {"subjects": [{"kind": "User", "name": ""}]},
        {"subjects": [{"kind": "ServiceAccount", "name": "x"}]},
        {"subjects": [{"kind": "ServiceAccount", "name": "x", "apiGroup": "y", "namespace": "z"}]},
    ):
        await ask("POST", f"{bindings}?dryRun=All", {**good, **changed})
    await ask("POST", bindings, good)
    await ask("PATCH", f"{bindings}/one", {"roleRef": {"name": "two"}}, MERGE)
    await ask(
        "POST",
        f"/apis/{objects.RBAC}/clusterroles?dryRun=All",
        {**head, "kind": "ClusterRole", "aggregationRule": {}},
    )
