"""Topic ``decisions``: claims on the overall quotas of FederatedResourceQuotas."""

from events import decisions, keys, shapes, topics


@shapes.recorded("quota-claimed", topics.DECISIONS)
class QuotaClaimed(decisions.BindingDecision, frozen=True, kw_only=True):
    """The amounts that a binding uses of its namespace's overall quotas, and those that it needs for its next change.

    Amounts are for all replicas together: cpu in millicores, other resources in whole units. ``wanted`` is empty if no
    change is pending. The owner shard of the quotas answers the claim with the newest ``number``.
    """

    number: shapes.Count
    used: dict[str, shapes.Count] = {}
    wanted: dict[str, shapes.Count] = {}


class QuotaVerdict(shapes.Shape, frozen=True, kw_only=True):
    """The answer to claim ``number`` of the binding ``by``; the claim is granted if ``fault`` is empty."""

    by: str
    number: shapes.Count
    fault: str = ""


@shapes.recorded("quota-decided", topics.DECISIONS)
class QuotaDecided(shapes.Event, frozen=True, kw_only=True):
    """Claims on the overall quotas of a namespace that are granted or refused.

    ``used`` is the sum of all granted amounts, by FederatedResourceQuota and resource.
    """

    namespace: str
    used: dict[str, dict[str, str]] = {}
    verdicts: tuple[QuotaVerdict, ...] = ()

    @property
    def subject(self) -> str:
        return keys.quota_key(self.namespace)

    @property
    def related(self) -> tuple[str, ...]:
        return tuple(verdict.by for verdict in self.verdicts)
