"""Random requests, valid or not, never cause a server error."""

import itertools
import json
import random

import pytest

from events.json_values import Json
from tests.api.kube.client import MAPS, POLICIES, api, create
from tests.builders.manifests import config_map


@pytest.mark.parametrize("seed", range(4))
async def test_random_requests_never_cause_a_server_error(seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311  # a seed makes it the same each time
    async with api() as (client, _):
        await create(client, config_map("one", a="1"))
        for _ in range(150):
            method = chance.choice(("GET", "POST", "PUT", "PATCH", "DELETE"))
            answer = await client.request(
                method,
                chance.choice(PATHS),
                params={"fieldManager": "me", chance.choice(NAMES): chance.choice(VALUES)},
                content=chance.choice(BODIES),
                headers={"content-type": chance.choice(TYPES), "accept": chance.choice(ACCEPTS)},
            )
            assert answer.status_code < 500, (method, answer.request.url, answer.request.content, answer.text)
        assert (await client.get("/readyz")).text == "ok"


CLUSTERS = "/apis/cluster.karmada.io/v1alpha1/clusters"
PATHS = (
    MAPS,
    f"{MAPS}/one",
    f"{MAPS}/one/status",
    POLICIES,
    f"{POLICIES}/one",
    CLUSTERS,
    f"{CLUSTERS}/one",
    "/apis/apps/v1/namespaces/default/deployments/one/scale",
    "/apis/apps/v1/deployments",
    "/api/v1/namespaces",
    "/api/v1/namespaces/one/finalize",
    "/api/v1/namespaces/default/events",
    "/apis/work.karmada.io/v1alpha2/resourcebindings",
    "/apis/work.karmada.io/v1alpha1/namespaces/karmada-es-x/works/y",
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
    "/apis//v1/x",
    "/apis/%00/v1/%ff/..",
    "/api/v1/namespaces//configmaps",
    "/openapi/v3/apis/apps/v1",
)
NAMES = (
    "labelSelector",
    "fieldSelector",
    "limit",
    "continue",
    "resourceVersion",
    "fieldManager",
    "dryRun",
    "force",
)
VALUES = (
    "",
    "a=b",
    "a in (",
    "metadata.name=one",
    "5",
    "-1",
    "9" * 30,
    "All",
    "true",
    "kubectl",
    "\u0660",
    "\x00",
)
TYPES = (
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
    "text/plain",
)
ACCEPTS = (
    "*/*",
    "application/json;as=Table;v=v1;g=meta.k8s.io",
    "application/json;as=PartialObjectMetadata;v=v1",
)
_HEADS = (
    {"apiVersion": "v1", "kind": "ConfigMap"},
    {"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster"},
    {"apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy"},
    {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"},
)
_PARTS: tuple[Json, ...] = (
    {},
    {"metadata": None},
    {"metadata": []},
    {"metadata": {"name": "one"}},
    {"metadata": {"name": 5}},
    {"metadata": {"name": "one", "labels": ["x"], "finalizers": {"a": 1}}},
    {"metadata": {"name": "one", "managedFields": [{"manager": "x", "operation": "Apply", "fieldsV1": "?"}]}},
    {"metadata": {"name": "one", "resourceVersion": "-3", "uid": 4}},
    {
        "metadata": {"name": "one"},
        "spec": {"taints": [{"key": "a", "effect": "NoExecute", "timeAdded": "?"}]},
    },
    {
        "metadata": {"name": "one"},
        "spec": {"resourceSelectors": [None], "placement": 3},
        "data": {"a": 10**30},
    },
    {"metadata": {"name": "one"}, "spec": {"versions": [[]], "names": []}, "status": 4},
)
BODIES = (
    b"",
    b"null",
    b"[]",
    b"[{}]",
    b'[{"op":"remove","path":"/metadata"}]',
    b'[{"op":"add","path":"/spec/x/-","value":1}]',
    b"k8s\x00\x0a\x03",
    b'{"$patch":"replace"}',
    b'{"a":' * 5_000,
    b"&a [*a, *a]",
    b'{"metadata":{"name":"\\ud800"}}',
    *(json.dumps({**head, **part}).encode() for head, part in itertools.product(_HEADS, _PARTS)),
)
