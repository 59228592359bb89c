"""Samples of the events about overall quotas and groups of workloads."""

from typing import Final

from events import group_decisions, links, quota_decisions, shapes

_KEY: Final = "default/foo-deployment"
_GROUP: Final = "workloadgroup:default/apart/app=web"
_USED: Final = {"cpu": 10, "memory": 64}
_FAULT: Final = "FederatedResourceQuota(default/all) exceeded for resource cpu: requested sum 20m, limit 10m."
SAMPLES: Final[tuple[shapes.Event, ...]] = (
    quota_decisions.QuotaClaimed(key=_KEY, number=7, used=_USED, wanted={"cpu": 20}),
    quota_decisions.QuotaDecided(
        namespace="default",
        used={"all": {"cpu": "10m"}},
        verdicts=(quota_decisions.QuotaVerdict(by=_KEY, number=7, fault=_FAULT),),
    ),
    links.QuotaRequested(namespace="default", key=_KEY, number=7, used=_USED, wanted={"cpu": 20}),
    links.QuotaAnswered(key=_KEY, number=7, fault=_FAULT),
    group_decisions.GroupClaimed(key=_KEY, group=_GROUP, number=7, placed=("member1",), wanted=("member2",)),
    group_decisions.GroupDecided(
        group=_GROUP,
        verdicts=(
            group_decisions.GroupVerdict(by=_KEY, number=7, granted=True, bound=True, others=("member3",)),
        ),
    ),
    links.GroupRequested(
        group=_GROUP, key=_KEY, number=7, apart=True, placed=("member1",), wanted=("member2",)
    ),
    links.GroupAnswered(key=_KEY, group=_GROUP, number=7, granted=True, bound=True, others=("member3",)),
)
