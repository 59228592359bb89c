"""Samples of the events about overall quotas."""

from typing import Final

from events import links, quota_decisions, shapes

_KEY: Final = "default/foo-deployment"
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
)
