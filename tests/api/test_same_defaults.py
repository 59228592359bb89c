"""An object is filled in alike, through whichever door it comes."""

import json
from typing import cast

import httpx
import msgspec
import pytest

from engine.gateway.kube.app import create_app
from tests.api.servers import NOW_MS, TOKEN, serving

GROUP = "/apis/policy.karmada.io/v1alpha1"
_SELECTORS = [{"apiVersion": "apps/v1", "kind": "Deployment"}]
_DIVIDED = {"replicaScheduling": {"weightPreference": {"dynamicWeight": "AvailableReplicas"}}}
_SPREAD = {"spreadConstraints": [{"maxGroups": 2}, {"spreadByLabel": "zone", "minGroups": 0}]}
_FAILOVER: dict[str, object] = {"application": {"decisionConditions": {}}, "cluster": {}}
_IMPORT = [{"apiVersion": "multicluster.x-k8s.io/v1alpha1", "kind": "ServiceImport"}]
SPECS: list[tuple[str, dict[str, object]]] = [
    ("PropagationPolicy", {"resourceSelectors": _SELECTORS}),
    ("PropagationPolicy", {"resourceSelectors": _SELECTORS, "placement": _DIVIDED}),
    ("PropagationPolicy", {"resourceSelectors": _SELECTORS, "placement": _SPREAD}),
    ("PropagationPolicy", {"resourceSelectors": _SELECTORS, "failover": _FAILOVER}),
    ("PropagationPolicy", {"resourceSelectors": _IMPORT, "priority": 7}),
    ("ClusterPropagationPolicy", {"resourceSelectors": _SELECTORS, "preemption": "Never"}),
    ("OverridePolicy", {"resourceSelectors": _SELECTORS, "overrideRules": []}),
    ("ClusterOverridePolicy", {"resourceSelectors": _SELECTORS, "overrideRules": []}),
]


@pytest.mark.parametrize(("kind", "spec"), SPECS)
async def test_defaults_are_those_of_the_reference_at_every_door(kind: str, spec: dict[str, object]) -> None:
    found: list[object] = []
    for through_commands in (True, False):
        async with serving() as services:
            metadata: dict[str, str] = {"name": "one"}
            plural = f"{kind.lower().removesuffix('y')}ies"
            path = f"{GROUP}/{plural}"
            if not kind.startswith("Cluster"):
                metadata["namespace"] = "default"
                path = f"{GROUP}/namespaces/default/{plural}"
            value = {
                "apiVersion": GROUP.removeprefix("/apis/"),
                "kind": kind,
                "metadata": metadata,
                "spec": spec,
            }
            app = create_app(services, lambda: NOW_MS)
            headers = {"authorization": f"Bearer {TOKEN}"}
            async with httpx.AsyncClient(
                transport=httpx.ASGITransport(app), base_url="http://kube", headers=headers
            ) as client:
                if through_commands:
                    (result,) = await services.door.apply(msgspec.json.encode(value))
                    assert not result.problems
                else:
                    answer = await client.post(path, json=value)
                    assert answer.status_code == 201, answer.text
                shown = cast("dict[str, object]", (await client.get(f"{path}/one")).json())
                found.append(shown["spec"])
    assert json.dumps(found[0], sort_keys=True) == json.dumps(found[1], sort_keys=True)
    assert found[0] != spec or kind == "ClusterOverridePolicy"
