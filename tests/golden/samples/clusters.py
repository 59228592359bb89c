"""Samples of the topic ``clusters``."""

from typing import Final

import msgspec

from events import clusters, enums, shapes
from tests.golden.samples.values import AT_MS, OWNER, TEMPLATE, UID

_TAINT: Final = clusters.Taint(key="maintenance", effect="NoExecute", value="soon", time_added_ms=AT_MS)
CLUSTERS: Final[tuple[shapes.Event, ...]] = (
    clusters.ClusterJoined(
        name="member1",
        labels={"location": "us"},
        provider="huaweicloud",
        region="east",
        zones=("east-1", "east-2"),
        taints=(_TAINT,),
        apis=(clusters.ApiKind(group_version="apps/v1", kinds=("Deployment",)),),
        resource_models=(
            clusters.ResourceGrade(
                grade=1, ranges=(clusters.Quantities(name="cpu", min="250m", max="1.5Gi"),)
            ),
        ),
        sync_mode=enums.SyncMode.PULL,
        api_endpoint="https://member1.example:6443",
        id="5b0f6a34",
        proxy_url="http://proxy.example:3128",
        secret_ref=clusters.SecretRef(namespace="karmada-cluster", name="member1"),
        impersonator_secret_ref=clusters.SecretRef(namespace="karmada-cluster", name="member1-impersonator"),
        kubernetes_version="v1.36.2",
        annotations={"example.com/owner": "shop"},
        managed_fields=(OWNER,),
        expects=0,
    ),
    clusters.ClusterLeaving(name="member1", expects=1),
    clusters.ClusterLeft(name="member1", uid=UID, expects=1),
    clusters.ClusterLabelled(name="member1", labels={"location": "us"}, managed_fields=(OWNER,), expects=1),
    clusters.ClusterDescribed(
        name="member1",
        provider="huaweicloud",
        region="east",
        zones=("east-1",),
        managed_fields=(OWNER,),
        expects=1,
    ),
    clusters.ClusterTainted(name="member1", taint=_TAINT, managed_fields=(OWNER,), expects=1),
    clusters.ClusterUntainted(
        name="member1", key="maintenance", effect="NoExecute", managed_fields=(OWNER,), expects=1
    ),
    clusters.CapacityReported(
        name="member1",
        allocatable={"cpu": "8", "memory": "16Gi", "pods": "110"},
        allocated={"cpu": "250m"},
        allocating={"memory": "1Gi"},
        modelings=(clusters.GradeCount(grade=1, count=3),),
        nodes=3,
        nodes_ready=2,
        quotas=(clusters.NamespaceQuota(namespace="shop", free={"cpu": "500m"}),),
    ),
    clusters.ClusterHealthChanged(
        name="member1",
        ready=False,
        reason="ClusterNotReachable",
        message="no answer",
        grace_seconds=40,
        silent=True,
        heard_ms=AT_MS,
    ),
    clusters.ClusterApisReported(
        name="member1",
        apis=(clusters.ApiKind(group_version="sea.example.io/v1", kinds=("Ship",), names=("fleet",)),),
    ),
    clusters.ClusterConditionsReported(
        name="member1",
        conditions=(
            clusters.ClusterCondition(
                type="NetworkReady",
                status="False",
                reason="PacketLoss",
                message="half of all packets are lost",
                last_transition_ms=AT_MS,
            ),
        ),
    ),
    clusters.MemberObjectApplied(
        name="member1",
        manifest=msgspec.Raw(
            b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"local","namespace":"default"}}'
        ),
    ),
    clusters.MemberObjectDeleted(name="member1", object=TEMPLATE, orphans=True),
    clusters.MemberPodDeleted(name="member1", owner=TEMPLATE, slot=1),
)
