"""Stories of the scale and the status of a Deployment."""

from tests.kube.oracle.objects import deployment
from tests.kube.oracle.playing import JSON_PATCH, MERGE, STRATEGIC, TABLE, Ask
from tests.kube.oracle.stories.requests import deployments, maps


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
