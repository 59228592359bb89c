"""Validation of ResourceQuotas; the messages are those of a real API server."""

import pytest

from engine.kubeapi.admission.rules import quotas
from events.kube_objects import KubeObject

UNKNOWN = "must be a standard resource type or fully qualified"
NO_QUOTA = "must be a standard resource for quota"


@pytest.mark.parametrize(
    ("resource", "amount", "details"),
    [
        ("foo", "1", [UNKNOWN, NO_QUOTA]),
        ("limits.storage", "1", [UNKNOWN, NO_QUOTA]),
        ("storage", "1Gi", [NO_QUOTA]),
        ("cpu", "-1", ["must be greater than or equal to 0"]),
        ("pods", "1500m", ["must be an integer"]),
        ("example.com/gpu", "500m", ["must be an integer"]),
        ("count/deployments.apps", "1500m", ["must be an integer"]),
        ("requests.example.com/gpu", "500m", []),
        ("cpu", "500m", []),
        ("requests.storage", "1Gi", []),
        ("services.loadbalancers", "0", []),
        ("requests.hugepages-2Mi", "4Mi", []),
    ],
)
def test_quota_limits_known_resources_to_valid_amounts(
    resource: str, amount: str, details: list[str]
) -> None:
    quota = KubeObject({"spec": {"hard": {resource: amount}}})
    faults = list(quotas.resource_quota(quota, None))
    assert [fault.message.rpartition(": ")[2] for fault in faults] == details
    assert {fault.field for fault in faults} <= {f"spec.hard[{resource}]"}
