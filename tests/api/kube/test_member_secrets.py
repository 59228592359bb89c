"""Secrets that give access to simulated members."""

import pytest

from events.json_values import Json
from tests.api.kube.client import api
from tests.builders.manifests import manifest


@pytest.mark.parametrize(("namespace", "has_token"), [("karmada-cluster", True), ("default", False)])
async def test_only_secrets_in_the_namespace_of_clusters_get_a_token_of_a_member(
    namespace: str, *, has_token: bool
) -> None:
    marks: Json = {"reballast.io/member": "member1", "reballast.io/member-uid": "a"}
    secret = manifest("v1", "Secret", "own", namespace, metadata={"annotations": marks})
    async with api() as (client, _):
        await client.post("/api/v1/namespaces", json=manifest("v1", "Namespace", namespace))
        path = f"/api/v1/namespaces/{namespace}/secrets"
        made = await client.post(path, json=secret)
        assert made.status_code == 201, made.text
        shown = (await client.get(f"{path}/own")).json()
        assert ("token" in shown.get("data", {})) == has_token
