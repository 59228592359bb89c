"""Custom kinds with the name of a kind of Karmada: queries, and Events about their objects."""

import httpx
import pytest
from msgspec import structs

from engine.http import member_namespaces
from events import clusters, keys, policies, shapes, specs
from tests.api.kube.client import api
from tests.api.servers import client, serving
from tests.builders.inputs import rebalancer, ref
from tests.builders.manifests import cluster_override_policy, manifest, raw
from tests.projections.asking import views_of
from tests.projections.logs import RecordBuilder
from tests.projections.stories import claimed, decided, declared


async def test_custom_kinds_are_distinguished_from_clusters_and_rebalancers_by_their_group() -> None:
    custom = [manifest("example.io/v1", kind, "own", "default") for kind in ("Cluster", "WorkloadRebalancer")]
    builder = RecordBuilder()
    batch = [builder.input(specs.TemplateApplied(manifest=raw(value))) for value in custom]
    batch += [
        builder.input(clusters.ClusterJoined(name="member1")),
        builder.input(rebalancer("again", ref("web"))),
    ]
    async with serving(batch) as services, client(services) as http:
        own = {"kind": "Cluster", "apiVersion": "example.io/v1"}
        for path, names in (
            ("objects?kind=Cluster", ["member1"]),
            (f"objects?{httpx.QueryParams(own)}", ["own"]),
            ("rebalancers", ["again"]),
        ):
            items = (await http.get(f"/api/v1/{path}")).json()["items"]
            assert [item["metadata"]["name"] for item in items] == names


@pytest.mark.parametrize("kind", ["Cluster", "Work", "FederatedResourceQuota", "Deployment"])
async def test_events_about_a_custom_object_are_found_by_its_name(kind: str) -> None:
    template = shapes.WorkloadRef(api_version="example.io/v1", kind=kind, namespace="default", name="own")
    key = keys.binding_key(kind, "default", "own")
    binding = structs.replace(declared(key, "own", 1), template=template)
    involved = {"kind": kind, "name": "own", "namespace": "default"}
    selector = ",".join(f"involvedObject.{field}={value}" for field, value in involved.items())
    async with api() as (kube, services):
        await services.log.append(RecordBuilder().decide(binding, claimed(key), decided(key, member1=1)))
        listed = await kube.get("/api/v1/namespaces/default/events", params={"fieldSelector": selector})
        assert {item["reason"] for item in listed.json()["items"]} >= {"ScheduleBindingSucceed"}


async def test_custom_kind_with_the_name_of_an_override_policy_changes_no_namespaces_of_members() -> None:
    changing = {"labelsOverrider": [{"operator": "add", "value": {"changed": "yes"}}]}
    custom = cluster_override_policy("own", {"overriders": changing}) | {"apiVersion": "example.io/v1"}
    builder = RecordBuilder()
    ask = await views_of(
        [
            builder.input(clusters.ClusterJoined(name="member1")),
            builder.input(policies.NamespaceApplied(manifest=raw(manifest("v1", "Namespace", "shop")))),
            builder.input(specs.TemplateApplied(manifest=raw(custom))),
        ]
    )
    shown = await ask(lambda rows: [item.manifest.labels for item in member_namespaces.of(rows, "member1")])
    assert shown
    assert not any("changed" in labels for labels in shown)
