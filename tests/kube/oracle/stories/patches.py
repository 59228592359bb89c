"""Stories of patches, and of server-side apply."""

from typing import cast

from tests.builders.manifests import manifest
from tests.kube.oracle.objects import Json, deployment, pod_template
from tests.kube.oracle.playing import APPLY, JSON_PATCH, MERGE, STRATEGIC, Ask
from tests.kube.oracle.stories.requests import NOTHING, deployments, version_of, with_metadata


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
    applied = deployment("one")
    await ask("PATCH", f"{at}?fieldManager=a", applied, APPLY)
    await ask("PATCH", f"{at}?fieldManager=a", applied, APPLY)
    await ask("PATCH", f"{at}?fieldManager=b", applied, APPLY)
    await ask("PATCH", f"{at}?fieldManager=b", deployment("one", replicas=5), APPLY)
    await ask("PATCH", f"{at}?fieldManager=b&force=true", deployment("one", replicas=5), APPLY)
    head = manifest("apps/v1", "Deployment", "one")
    await ask("PATCH", f"{at}?fieldManager=b", head, APPLY)
    await ask("PATCH", at, {"spec": {"replicas": 7}}, MERGE)
    await ask("PATCH", f"{at}?fieldManager=a", applied, APPLY)
    await ask("PATCH", f"{at}?fieldManager=a&force=true", applied, APPLY)
    without = {
        **applied,
        "spec": {key: item for key, item in cast("Json", applied["spec"]).items() if key != "replicas"},
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
    await ask("PUT", f"{at}?fieldManager=e", with_metadata(applied, managedFields=[]))
    await ask("PATCH", at, [{"op": "replace", "path": "/metadata/managedFields", "value": [{}]}], JSON_PATCH)
    await ask("DELETE", at)
