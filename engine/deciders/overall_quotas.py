"""Overall quotas (``spec.overall``) of FederatedResourceQuotas: bindings claim amounts, the quotas' owner grants them.

A change that makes a binding use more than was granted to it waits until the owner shard of the namespace's quotas
grants the new amounts. As in Karmada, a new assignment that exceeds a quota fails with the reason QuotaExceeded, and
a template with new requests that exceed one is not applied. A change that uses no more than before is made at once and
reported afterwards. Amounts that were in use before the quota existed are reported without a check.

The owner adds up the amounts in use and grants claims in the order of their arrival, as long as no quota is
exceeded. A refused claim stays open until the quotas suffice or the binding claims other amounts.
"""

from typing import Final

from msgspec import Struct

from engine.deciders import quota_amounts
from engine.deciders.ledgers import Ledger, QuotaClaim
from engine.deciders.quota_amounts import Amounts, Limits
from engine.deciders.state import Binding
from engine.deciders.step_outputs import Outputs, View
from events import keys, links, quota_decisions

QUOTA_EXCEEDED: Final = "QuotaExceeded"

_VERDICTS_MAX: Final = 500
"""Maximum number of verdicts in one record, which bounds its size."""

_DENIED: Final = 'admission webhook "resourcebinding.karmada.io" denied the request: '
_SUM: Final = " requested sum "
_LIMIT: Final = ", limit "


class Pending(Struct, frozen=True):
    """The owner shard of the namespace's quotas has not answered the claim yet."""


class Refused(Struct, frozen=True):
    """A refusal; ``fault`` is its reason."""

    fault: str


def admit(
    binding: Binding,
    requested: Amounts,
    view: View,
    *,
    is_declared: bool = False,
) -> Outputs[Pending | Refused | None]:
    """Return ``Pending`` or ``Refused`` if the binding may not use these amounts now; None if it may.

    If necessary, the amounts are claimed from the owner shard of the namespace's quotas. ``is_declared``: the amounts
    belong to the declared version of the template; they are not claimed while a claim for a newer version is open.
    """
    namespace, _ = keys.split(binding.key)
    limited = view.facts.overall.get(namespace) if namespace else None
    if not limited:
        return None
    claim, used = view.shard.quota_claims.get(binding.key), _used(binding)
    reserved = claim.reserved if claim else {}
    tracked = {resource for overall in limited.values() for resource in overall}
    if all(
        amount <= max(reserved.get(resource, 0), used.get(resource, 0))
        for resource, amount in requested.items()
        if resource in tracked
    ):
        return None
    if claim is not None and (
        claim.wanted == requested or (is_declared and _is_for_undeclared_version(claim, binding))
    ):
        return Refused(claim.fault) if claim.fault else Pending()
    yield from _request(binding, claim, used, requested, view)
    return Pending()


def _is_for_undeclared_version(claim: QuotaClaim, binding: Binding) -> bool:
    """Whether a claim is for a version of the template that is not declared yet.

    A binding has one claim at a time. If the declared and the new version replaced each other's claim in each step,
    neither would be granted.
    """
    if not (binding.has_undeclared_write and claim.wanted) or claim.is_granted:
        return False
    return not claim.fault or (binding.refused is not None and binding.refused.fault == claim.fault)


def settle(binding: Binding, view: View) -> Outputs[None]:
    """If the amounts that a binding uses have changed, report them to the owner of its namespace's overall quotas."""
    claim = view.shard.quota_claims.get(binding.key)
    if claim is None and not view.facts.overall.get(keys.split(binding.key)[0]):
        return
    used = _used(binding)
    # If the binding was withdrawn while its claim was open, the claim could still be granted: replace it.
    is_open = claim is not None and bool(claim.wanted) and binding.declared is None
    if used == (claim.reserved if claim else {}) and not is_open:
        return
    is_held = claim is not None and (not claim.is_granted or view.shard.awaits(binding.key))
    requested = claim.wanted if claim and is_held and binding.declared is not None else {}
    if claim is None or (used, requested) != (claim.used, claim.wanted):
        yield from _request(binding, claim, used, requested, view)


def _used(binding: Binding) -> Amounts:
    if binding.declared is None:
        return {}
    return quota_amounts.amounts(binding.declared.requests, quota_amounts.replicas(binding.clusters))


def _request(
    binding: Binding, claim: QuotaClaim | None, used: Amounts, requested: Amounts, view: View
) -> Outputs[None]:
    number = view.next_number(claim.number if claim else None)
    yield quota_decisions.QuotaClaimed(key=binding.key, number=number, used=used, wanted=requested)
    namespace, _ = keys.split(binding.key)
    yield links.QuotaRequested(
        namespace=namespace, key=binding.key, number=number, used=used, wanted=requested
    )


def share(ledger: Ledger, known: Limits) -> Outputs[None]:
    """Grant or refuse the open claims, and send each verdict that differs from the last one on its claim."""
    limits = known.get(ledger.namespace, {})
    limit_texts = _limit_texts(ledger.namespace, limits)
    totals = dict(ledger.totals)
    # Collect all verdicts before emitting the first: applying a verdict removes its claim from ``ledger.open``.
    verdicts: list[quota_decisions.QuotaVerdict] = []
    for by in ledger.open:
        claim = ledger.claims[by]
        fault = _fault(ledger.namespace, limits, totals, claim)
        # Send no new verdict if the claim is still refused and the limit in its last verdict is unchanged. The sum in
        # the message changes with every other claim, so thousands of refused claims would get new verdicts each time.
        if fault and _limit_in(claim.fault) in limit_texts:
            continue
        if not fault:
            quota_amounts.add(totals, claim.used, -1)
            quota_amounts.add(totals, claim.wanted)
        verdicts.append(quota_decisions.QuotaVerdict(by=by, number=claim.number, fault=fault))
    used = {
        name: {
            resource: quota_amounts.shown(resource, totals[resource])
            for resource in sorted(overall)
            if resource in totals
        }
        for name, overall in sorted(limits.items())
    }
    if not verdicts and used == ledger.shown:
        return
    for start in range(0, max(len(verdicts), 1), _VERDICTS_MAX):
        portion = tuple(verdicts[start : start + _VERDICTS_MAX])
        yield quota_decisions.QuotaDecided(namespace=ledger.namespace, used=used, verdicts=portion)
    for verdict in verdicts:
        yield links.QuotaAnswered(key=verdict.by, number=verdict.number, fault=verdict.fault)


def _fault(namespace: str, limits: dict[str, Amounts], totals: Amounts, claim: QuotaClaim) -> str:
    """Return Karmada's message about the quota that a claim exceeds; empty if it exceeds none."""
    for name, overall in sorted(limits.items()):
        for resource, limit in sorted(overall.items()):
            more = claim.wanted.get(resource, 0) - claim.used.get(resource, 0)
            total = totals.get(resource, 0) + more
            if more > 0 and total > limit:
                start, end = _limit_text(namespace, name, resource, limit)
                return f"{start}{_SUM}{quota_amounts.shown(resource, total)}{_LIMIT}{end}"
    return ""


def _limit_text(namespace: str, name: str, resource: str, limit: int) -> tuple[str, str]:
    """Return the start and the end of the message that a claim exceeds a limit; the requested sum is between them."""
    exceeded = f"{_DENIED}FederatedResourceQuota({namespace}/{name}) exceeded for resource {resource}:"
    return exceeded, f"{quota_amounts.shown(resource, limit)}."


def _limit_texts(namespace: str, limits: dict[str, Amounts]) -> frozenset[tuple[str, str]]:
    """Return the ``_limit_text`` of each limit."""
    return frozenset(
        _limit_text(namespace, name, resource, limit)
        for name, overall in limits.items()
        for resource, limit in overall.items()
    )


def _limit_in(fault: str) -> tuple[str, str]:
    """Return the ``_limit_text`` of the limit that a message names."""
    start, _, rest = fault.partition(_SUM)
    return start, rest.rpartition(_LIMIT)[2]
