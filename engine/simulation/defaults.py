"""The default members, and fleets of any size for benchmarks and simulations."""

from typing import Final

from engine.simulation.specs import STARTUP_MS, MemberSpec, NodeGroup
from events.clusters import ApiKind

APIS: Final = (
    ApiKind(
        group_version="v1",
        kinds=(
            "ConfigMap",
            "LimitRange",
            "Namespace",
            "PersistentVolume",
            "PersistentVolumeClaim",
            "Pod",
            "ResourceQuota",
            "Secret",
            "Service",
            "ServiceAccount",
        ),
    ),
    ApiKind(group_version="apiextensions.k8s.io/v1", kinds=("CustomResourceDefinition",)),
    ApiKind(group_version="apps/v1", kinds=("DaemonSet", "Deployment", "ReplicaSet", "StatefulSet")),
    ApiKind(group_version="autoscaling/v2", kinds=("HorizontalPodAutoscaler",)),
    ApiKind(group_version="batch/v1", kinds=("CronJob", "Job")),
    ApiKind(
        group_version="flowcontrol.apiserver.k8s.io/v1", kinds=("FlowSchema", "PriorityLevelConfiguration")
    ),
    ApiKind(
        group_version="networking.k8s.io/v1",
        kinds=("Ingress", "IngressClass", "NetworkPolicy", "ServiceCIDR"),
    ),
    ApiKind(group_version="node.k8s.io/v1", kinds=("RuntimeClass",)),
    ApiKind(group_version="policy/v1", kinds=("PodDisruptionBudget",)),
    ApiKind(
        group_version="rbac.authorization.k8s.io/v1",
        kinds=("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"),
    ),
    ApiKind(
        group_version="resource.k8s.io/v1",
        kinds=("DeviceClass", "ResourceClaim", "ResourceClaimTemplate", "ResourceSlice"),
    ),
    ApiKind(group_version="scheduling.k8s.io/v1", kinds=("PriorityClass",)),
    ApiKind(
        group_version="storage.k8s.io/v1",
        kinds=("CSIStorageCapacity", "StorageClass", "VolumeAttributesClass"),
    ),
)
"""The built-in kinds of Kubernetes that members serve."""

NODES: Final = NodeGroup(count=100, allocatable={"cpu": "32", "memory": "128Gi", "pods": "110"})
"""Capacity for 11,000 pods: 100 nodes with Kubernetes' default of 110 pods each."""

_REGIONS: Final = ("us-east-1", "us-west-1", "eu-west-1", "eu-north-1", "ap-south-1")
_PROVIDERS: Final = ("alpha", "beta", "gamma")
_LOCATION_LETTERS: Final = 2
_SIZES: Final = 7
_ZONES: Final = 3
_DIGITS: Final = 4


def three_members(startup_ms: int = STARTUP_MS) -> list[MemberSpec]:
    """Return member1, member2 and member3, each in its own region. They are equally large, so names decide ties."""
    return [
        _member("member1", "us", "huaweicloud", "us-east-1", startup_ms),
        _member("member2", "us", "huaweicloud", "cn-south-1", startup_ms),
        _member("member3", "eu", "aws", "eu-west-1", startup_ms),
    ]


def many_members(count: int) -> list[MemberSpec]:
    """Return ``count`` members of seven sizes in five regions with three zones each, from three providers.

    Their replicas are ready at once.
    """
    return [_one_of_many(index) for index in range(count)]


def _member(name: str, location: str, provider: str, region: str, startup_ms: int) -> MemberSpec:
    return MemberSpec(
        name=name,
        nodes=(NODES,),
        labels={"location": location},
        provider=provider,
        region=region,
        zones=(f"{region}a",),
        apis=APIS,
        startup_ms=startup_ms,
    )


def _one_of_many(index: int) -> MemberSpec:
    region = _REGIONS[index % len(_REGIONS)]
    zone = "abc"[index // len(_REGIONS) % _ZONES]
    return MemberSpec(
        name=f"member-{index + 1:0{_DIGITS}d}",
        nodes=(NodeGroup(count=10 * (1 + index % _SIZES), allocatable=NODES.allocatable),),
        labels={"location": region[:_LOCATION_LETTERS], "tier": ("gold", "silver")[index % 2]},
        provider=_PROVIDERS[index % len(_PROVIDERS)],
        region=region,
        zones=(region + zone,),
        apis=APIS,
        startup_ms=0,
    )
