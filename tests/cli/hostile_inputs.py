"""Valid requests of hostile sizes, of every kind that the APIs accept: at the limits and beyond."""

import json
from collections.abc import Iterator
from typing import Final, NamedTuple

from events.json_values import Json
from tests.builders.manifests import (
    CONFIG_MAP,
    SECRET,
    config_map,
    definition,
    deployment,
    manifest,
    override_policy,
    policy,
    rebalancer,
    selector,
    taint_policy,
)

POLICIES: Final = "/apis/policy.karmada.io/v1alpha1/namespaces/default/propagationpolicies"
OVERRIDES: Final = "/apis/policy.karmada.io/v1alpha1/namespaces/default/overridepolicies"
TAINT_POLICIES: Final = "/apis/policy.karmada.io/v1alpha1/clustertaintpolicies"
DEPLOYMENTS: Final = "/apis/apps/v1/namespaces/default/deployments"
CONFIG_MAPS: Final = "/api/v1/namespaces/default/configmaps"
SECRETS: Final = "/api/v1/namespaces/default/secrets"
REBALANCERS: Final = "/apis/apps.karmada.io/v1alpha1/workloadrebalancers"
DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
CUSTOM: Final = "/apis/example.io/v1/namespaces/default/foos"

_KEYS: Final = 20_000
_WIDE: Final = {f"key{index}": "x" for index in range(_KEYS)}
_JSON: Final = "application/json"
_APPLY: Final = "application/apply-patch+yaml"
_MERGE: Final = "application/merge-patch+json"
_STRATEGIC: Final = "application/strategic-merge-patch+json"
_JSON_PATCH: Final = "application/json-patch+json"
_TABLE: Final = "application/json;as=Table;g=meta.k8s.io;v=v1"


class Input(NamedTuple):
    """A request of the query API if ``is_query``, otherwise of the Kubernetes API."""

    method: str
    path: str
    content: bytes = b""
    media: str = _JSON
    accept: str = _JSON
    is_query: bool = False


def posted(path: str, value: Json) -> Input:
    return Input("POST", path, json.dumps(value).encode())


def patched(path: str, media: str, value: object) -> Input:
    return Input("PATCH", path, json.dumps(value).encode(), media)


def labelled(count: int) -> list[Json]:
    return [selector(labelSelector={"matchLabels": {"group": f"g{index}"}}) for index in range(count)]


def marked(label: str) -> Json:
    return {"overriders": {"labelsOverrider": [{"operator": "add", "value": {label: "x"}}]}}


def inputs() -> Iterator[Input]:
    """Yield all requests, in an order in which later ones meet the objects of earlier ones."""
    yield from policies()
    yield from objects()
    yield from patches()
    yield from kinds()
    for number in range(20):
        yield posted(OVERRIDES, override_policy(f"o{number}", marked(f"o{number}")))
    yield posted(OVERRIDES, override_policy("rules", *(marked(f"r{number}") for number in range(1_000))))
    yield from questions()


def policies() -> Iterator[Input]:
    yield posted(POLICIES, policy("selectors", None, *labelled(1_000)))
    yield Input("DELETE", f"{POLICIES}/selectors")
    yield posted(POLICIES, policy("too-many", None, *labelled(8_000)))
    conditions: list[Json] = [
        {"key": f"none{index}", "operator": "NotIn", "values": ["a", "b"]} for index in range(1_000)
    ]
    selective = selector(labelSelector={"matchExpressions": conditions})
    yield posted(POLICIES, policy("conditions", None, selective))
    terms = [{"affinityName": f"a{index}", "clusterNames": ["member1"]} for index in range(1_000)]
    yield posted(POLICIES, policy("affinities", {"clusterAffinities": terms}))
    yield posted(POLICIES, policy("all", propagateDeps=True))
    for number in range(2):
        taints = [{"key": f"k{number}-{index}", "effect": "NoSchedule"} for index in range(1_000)]
        condition: Json = {"conditionType": "Ready", "operator": "In", "statusValues": ["True"]}
        value = taint_policy(
            f"taints{number}", addOnConditions=[condition], removeOnConditions=[], taints=taints
        )
        yield posted(TAINT_POLICIES, value)
    workloads = (selector(f"web{index}", namespace="default") for index in range(9_900))
    yield posted(REBALANCERS, rebalancer("all", *workloads))


def objects() -> Iterator[Input]:
    yield posted(CONFIG_MAPS, config_map("wide", **_WIDE))
    yield posted(CONFIG_MAPS, config_map("one-value", key="x" * 1_000_000))
    yield posted(
        CONFIG_MAPS,
        manifest(*CONFIG_MAP, "labels", metadata={"labels": {f"l{index}": "x" for index in range(30_000)}}),
    )
    yield posted(
        CONFIG_MAPS,
        manifest(*CONFIG_MAP, "ends", metadata={"finalizers": [f"a.io/f{index}" for index in range(20_000)]}),
    )
    yield posted(SECRETS, manifest(*SECRET, "wide", data=dict.fromkeys(_WIDE, "eHg=")))
    yield posted(DEPLOYMENTS, deployment("needy", volumes=needed(1_000)))
    yield posted(DEPLOYMENTS, deployment("too-needy", volumes=needed(2_000)))
    yield posted(
        DEPLOYMENTS, deployment("labelled", metadata={"labels": {f"l{index}": "x" for index in range(2_000)}})
    )


def needed(count: int) -> list[Json]:
    return [{"name": f"v{index}", "configMap": {"name": f"c{index}"}} for index in range(count)]


def patches() -> Iterator[Input]:
    path = f"{CONFIG_MAPS}/patched"
    yield posted(CONFIG_MAPS, config_map("patched", a="b"))
    yield patched(path, _MERGE, {"data": _WIDE})
    yield patched(path, _STRATEGIC, {"data": dict.fromkeys(_WIDE, "y")})
    operations = [{"op": "replace", "path": f"/data/key{index}", "value": "z"} for index in range(5_000)]
    yield patched(path, _JSON_PATCH, operations)
    yield patched(path, _MERGE, {f"unknown{index}": 1 for index in range(120_000)})
    yield Input("PATCH", path, b'{"a":1,"a":2,' + json.dumps(_WIDE).encode()[1:], _MERGE)
    applied = config_map("applied", **_WIDE)
    yield patched(f"{CONFIG_MAPS}/applied?fieldManager=one", _APPLY, applied)
    lines = "".join(f"  {name}: x\n" for name in _WIDE)
    head = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: applied}\ndata:\n"
    yield Input("PATCH", f"{CONFIG_MAPS}/applied?fieldManager=two", (head + lines).encode(), _APPLY)
    conditions: Json = {"preconditions": _WIDE}
    yield Input("DELETE", f"{CONFIG_MAPS}/applied", json.dumps(conditions).encode())
    options = f"apiVersion: v1\nkind: DeleteOptions\npreconditions:\n{lines}"
    yield Input("DELETE", f"{CONFIG_MAPS}/wide", options.encode(), "application/yaml")


def kinds() -> Iterator[Input]:
    fields = {f"field{index}": {"type": "string"} for index in range(20_000)}
    schema: Json = {"type": "object", "properties": {"spec": {"type": "object", "properties": fields}}}
    yield posted(DEFINITIONS, definition("foos", "Foo", schema=schema))
    yield Input("GET", "/openapi/v3/apis/example.io/v1")
    yield Input("GET", "/openapi/v2")
    yield posted(CUSTOM, manifest("example.io/v1", "Foo", "foo", spec=dict.fromkeys(fields, "x")))


def questions() -> Iterator[Input]:
    for path in ("/api/v1/configmaps", "/api/v1/secrets", "/apis/apps/v1/deployments", POLICIES, CUSTOM):
        yield Input("GET", path)
        yield Input("GET", path, accept=_TABLE)
    for path in ("/apis/work.karmada.io/v1alpha2/resourcebindings", "/apis/work.karmada.io/v1alpha1/works"):
        yield Input("GET", path)
    yield Input("GET", f"{CONFIG_MAPS}?watch=1&timeoutSeconds=1")
    for path in ("/api/v1/log?limit=1000", "/api/v1/bindings", "/bindings", "/clusters", "/openapi.json"):
        yield Input("GET", path, is_query=True)
