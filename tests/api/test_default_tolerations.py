"""Default tolerations of policies for failed clusters: added by every write path, and not changed later."""

from collections.abc import AsyncIterator
from typing import cast

import httpx
import pytest

from engine.http.services import Services
from engine.karmada.default_tolerations import NOT_READY, UNREACHABLE, TolerationSeconds
from events.json_values import Json
from tests.api.servers import kube_client, serving
from tests.builders.manifests import manifest

API_VERSION = "policy.karmada.io/v1alpha1"
PATH = f"/apis/{API_VERSION}/namespaces/default/propagationpolicies"
ADDED = [
    {"key": NOT_READY, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60},
    {"key": UNREACHABLE, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 90},
]


def written(labels: dict[str, str] | None = None, **placement: object) -> Json:
    """Return a policy as a client writes it."""
    spec: Json = {"resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment"}]}
    return manifest(
        API_VERSION,
        "PropagationPolicy",
        "one",
        "default",
        metadata={"labels": labels or {}},
        spec={**spec, "placement": placement} if placement else spec,
    )


@pytest.fixture
async def services() -> AsyncIterator[Services]:
    async with serving(tolerated=TolerationSeconds(not_ready=60, unreachable=90)) as services:
        yield services


@pytest.fixture
async def kube(services: Services) -> AsyncIterator[httpx.AsyncClient]:
    async with kube_client(services) as client:
        yield client


async def tolerations(kube: httpx.AsyncClient) -> object:
    shown = (await kube.get(f"{PATH}/one")).json()
    return cast("Json", cast("Json", shown["spec"])["placement"]).get("clusterTolerations")


async def test_default_tolerations_are_added_and_a_second_apply_without_them_is_no_change(
    kube: httpx.AsyncClient,
) -> None:
    made = await kube.post(PATH, json=written())
    assert made.status_code == 201, made.text
    assert await tolerations(kube) == ADDED
    apply = {"content-type": "application/apply-patch+yaml"}
    path = f"{PATH}/one?fieldManager=me&force=true"
    first = (await kube.patch(path, json=written(), headers=apply)).json()
    again = (await kube.patch(path, json=written(), headers=apply)).json()
    assert first["metadata"]["resourceVersion"] == again["metadata"]["resourceVersion"]
    assert await tolerations(kube) == ADDED


async def test_removed_default_tolerations_are_added_again_and_own_tolerations_are_kept(
    kube: httpx.AsyncClient,
) -> None:
    own = [{"operator": "Exists"}]
    await kube.post(PATH, json=written(clusterTolerations=own))
    assert await tolerations(kube) == own
    merge = {"content-type": "application/merge-patch+json"}
    nothing: Json = {"spec": {"placement": {"clusterTolerations": None}}}
    await kube.patch(f"{PATH}/one", json=nothing, headers=merge)
    assert await tolerations(kube) == ADDED
    patch: Json = {"spec": {"placement": {"clusterTolerations": own}}}
    await kube.patch(f"{PATH}/one", json=patch, headers=merge)
    assert await tolerations(kube) == own
