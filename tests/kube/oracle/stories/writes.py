"""Stories of objects that are created, replaced and deleted."""

from tests.kube.oracle.objects import Json, config_map, deployment
from tests.kube.oracle.playing import APPLY, MERGE, STRATEGIC, TABLE, Ask, Story
from tests.kube.oracle.stories.requests import deployments, maps, metadata_of, with_metadata


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
