"""Invalid classes, claims of devices, storage capacities and priority levels."""

from typing import Final

from tests.kube.oracle.objects import DEVICES, FLOW_CONTROL, STORAGE
from tests.kube.oracle.stories.invalid.changes import ABSENT, Change, story

_EXACTLY: Final = "spec.devices.requests.0.exactly"
_RESPONSE: Final = "spec.limited.limitResponse"
_RULE: Final = "spec.rules.0"
_CONFIG: Final = {"opaque": {"driver": "gpu.example.com", "parameters": {"sharing": "none"}}}


def _within(prefix: str, changes: list[tuple[Change, ...]]) -> list[tuple[Change, ...]]:
    """Return the changes of a ResourceClaim for an object that contains its spec at a prefix."""
    return [tuple((f"{prefix}{path}", value) for path, value in change) for change in changes]


_CLAIMS: Final[list[tuple[Change, ...]]] = [
    (("spec.devices.requests.0.name", "A b"),),
    (("spec.devices.requests.1.name", "gpu"),),
    ((_EXACTLY, ABSENT),),
    (("spec.devices.requests.1.exactly", {"deviceClassName": "gpu"}),),
    ((f"{_EXACTLY}.deviceClassName", ABSENT),),
    ((f"{_EXACTLY}.deviceClassName", "A b"),),
    ((f"{_EXACTLY}.allocationMode", "Other"),),
    ((f"{_EXACTLY}.allocationMode", "All"), (f"{_EXACTLY}.count", 2)),
    ((f"{_EXACTLY}.count", -1),),
    ((f"{_EXACTLY}.selectors", [{}]),),
    (("spec.devices.constraints.0.requests", ["gpu", "none", "other/none"]),),
    (("spec.devices.constraints.0.matchAttribute", ABSENT),),
    (("spec.devices.config", [{"requests": ["gpu"]}]),),
    (("spec.devices.config", [{"opaque": {"driver": "", "parameters": 5}}]),),
]

CLASSES: Final = {
    "runtime_classes": story(
        "/apis/node.k8s.io/v1/runtimeclasses",
        [
            (("handler", ABSENT),),
            (("handler", "A b"),),
            (("overhead.podFixed", {"cpu": "-1"}),),
            (("overhead.podFixed", {"other": "1"}),),
            (("scheduling.nodeSelector", {"a b": "c"}),),
            (("scheduling.tolerations", [{"key": "a", "operator": "Other"}]),),
            (("metadata.name", "A"),),
        ],
        [{"handler": "kata"}, {"overhead": None}, {"scheduling": {"nodeSelector": {"a": "b"}}}],
    ),
    "volume_attributes_classes": story(
        f"/apis/{STORAGE}/volumeattributesclasses",
        [
            (("driverName", ABSENT),),
            (("driverName", "a b"),),
            (("parameters", ABSENT),),
            (("parameters", {"": "a"}),),
            (("parameters", {"a": "b" * 262_144}),),
        ],
        [{"driverName": "other.example.com"}, {"parameters": {"iops": "1"}}],
    ),
    "storage_capacities": story(
        f"/apis/{STORAGE}/namespaces/{{ns}}/csistoragecapacities",
        [
            (("storageClassName", ABSENT),),
            (("storageClassName", "A b"),),
            (("capacity", "-1"),),
            (("nodeTopology", {"matchLabels": {"a b": "c"}}),),
        ],
        [{"storageClassName": "slow"}, {"capacity": "5Gi"}],
    ),
    "device_classes": story(
        f"/apis/{DEVICES}/deviceclasses",
        [
            (("spec", {}),),
            (("spec.selectors", [{}]),),
            (("spec.selectors", [{"cel": {"expression": "x" * 10_241}}]),),
            (("spec.config", [{}]),),
            (("spec.config", [{"opaque": {"parameters": {}}}]),),
            (("spec.config", [{"opaque": {"driver": "x" * 64, "parameters": {}}}]),),
            (("spec.config", [{"opaque": {"driver": "a b", "parameters": {}}}]),),
            (("spec.config", [{"opaque": {"driver": "gpu.example.com"}}]),),
            (("spec.config", [{"opaque": {"driver": "gpu.example.com", "parameters": "x"}}]),),
        ],
        [{"spec": {"selectors": None}}, {"spec": {"config": [_CONFIG]}}],
    ),
    "resource_claims": story(
        f"/apis/{DEVICES}/namespaces/{{ns}}/resourceclaims",
        _CLAIMS,
        [{"spec": {"devices": {"requests": None, "constraints": None}}}],
    ),
    "resource_claim_templates": story(
        f"/apis/{DEVICES}/namespaces/{{ns}}/resourceclaimtemplates",
        _within("spec.", _CLAIMS),
        [{"spec": {"metadata": {"labels": {"a": "c"}}}}],
    ),
    "resource_slices": story(
        f"/apis/{DEVICES}/resourceslices",
        [
            (("spec.driver", ABSENT),),
            (("spec.pool.name", ABSENT),),
            (("spec.pool.name", "a//b"),),
            (("spec.pool.resourceSliceCount", 0),),
            (("spec.pool.generation", -1),),
            (("spec.nodeName", ABSENT),),
            (("spec.allNodes", True),),
            (("spec.devices.0.name", "A"),),
            (("spec.devices", [{"name": "a"}, {"name": "a"}]),),
        ],
        [
            {"spec": {"driver": "other.example.com"}},
            {"spec": {"pool": {"name": "other"}}},
            {"spec": {"nodeName": "node2"}},
            {"spec": {"pool": {"generation": 2}}},
        ],
    ),
    "priority_levels": story(
        f"/apis/{FLOW_CONTROL}/prioritylevelconfigurations",
        [
            (("spec.type", ABSENT),),
            (("spec.type", "Exempt"),),
            (("spec.limited", ABSENT),),
            (("spec.exempt", {}),),
            (("spec.limited.nominalConcurrencyShares", -1),),
            (("spec.limited.lendablePercent", 101),),
            (("spec.limited.borrowingLimitPercent", -1),),
            ((_RESPONSE, {}),),
            ((f"{_RESPONSE}.type", "Reject"),),
            ((f"{_RESPONSE}.queuing", ABSENT),),
            ((f"{_RESPONSE}.queuing", {"queues": -1, "handSize": -1, "queueLengthLimit": -1}),),
            ((f"{_RESPONSE}.queuing", {"queues": 4}),),
        ],
        [{"spec": {"limited": {"nominalConcurrencyShares": 5}}}],
    ),
    "flow_schemas": story(
        f"/apis/{FLOW_CONTROL}/flowschemas",
        [
            (("spec.priorityLevelConfiguration.name", ""),),
            (("spec.priorityLevelConfiguration.name", "A b"),),
            (("spec.matchingPrecedence", 1),),
            (("spec.matchingPrecedence", -1),),
            (("spec.matchingPrecedence", 10_001),),
            (("spec.distinguisherMethod.type", "Other"),),
            (("spec.rules", [{}]),),
            ((f"{_RULE}.subjects", [{"kind": "Other"}]),),
            ((f"{_RULE}.subjects", [{"kind": "Group"}]),),
            ((f"{_RULE}.subjects", [{"kind": "User", "user": {"name": ""}, "group": {"name": "a"}}]),),
            ((f"{_RULE}.subjects", [{"kind": "ServiceAccount", "serviceAccount": {"name": ""}}]),),
            ((f"{_RULE}.resourceRules", [{}]),),
            ((f"{_RULE}.nonResourceRules", [{}]),),
        ],
        [],
    ),
    "service_cidrs": story(
        "/apis/networking.k8s.io/v1/servicecidrs",
        [
            (("spec.cidrs", []),),
            (("spec.cidrs", ["x"]),),
            (("spec.cidrs", ["10.97.0.0/16", "10.98.0.0/16"]),),
        ],
        [
            {"spec": {"cidrs": ["10.98.0.0/16"]}},
            {"spec": {"cidrs": ["10.97.0.0/16", "2001:db8::/64"]}},
            {"spec": {"cidrs": ["10.97.0.0/16"]}},
        ],
    ),
}
