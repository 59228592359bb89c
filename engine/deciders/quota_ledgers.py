"""Fold claims and verdicts on overall quotas.

The shard of a binding keeps the binding's claim, the owner shard of a namespace's quotas keeps a ledger of all claims.
"""

from engine.deciders import quota_amounts
from engine.deciders.ledgers import Ledger, QuotaClaim
from engine.deciders.state import ShardState
from events import links, quota_decisions


def take(shard: ShardState, key: str, link: links.QuotaRequested) -> bool:
    """Fold a claim into the ledger with this key; return False if it is not newer than the binding's last claim."""
    ledger = shard.ledgers.setdefault(key, Ledger(link.namespace))
    previous = ledger.claims.pop(link.key, None)
    if previous is not None:
        if link.number <= previous.number:
            ledger.claims[link.key] = previous
            return False
        quota_amounts.add(ledger.totals, previous.reserved, -1)
    quota_amounts.add(ledger.totals, link.used)
    if link.used or link.wanted:
        ledger.claims[link.key] = QuotaClaim(link.number, link.used, link.wanted)
    if link.wanted:
        # Claims are decided in the order of the dict. A claim that is open already keeps its position.
        ledger.open[link.key] = True
    else:
        ledger.open.pop(link.key, None)
    if not ledger.claims and not ledger.shown:
        # The quotas were deleted before this last claim ended: no decision follows that could remove the ledger.
        del shard.ledgers[key]
    return True


def forget_shown(shard: ShardState, key: str, quota: str) -> None:
    """Clear the last recorded use (``shown``) of a quota whose limits were removed, in the ledger with this key.

    If the quota is created again before the next step, another decision is necessary to show the use in its status.
    """
    ledger = shard.ledgers.get(key)
    if ledger is not None and quota in ledger.shown:
        # The next use has amounts for the quota or no entry for it. An empty entry differs from both, so a decision
        # follows.
        ledger.shown = {**ledger.shown, quota: {}}


def apply(shard: ShardState, data: quota_decisions.QuotaClaimed | quota_decisions.QuotaDecided) -> None:
    """Apply a decision: a binding of the shard claims quotas, or the shard decides claims on quotas that it owns."""
    if isinstance(data, quota_decisions.QuotaClaimed):
        if data.used or data.wanted:
            shard.quota_claims[data.key] = QuotaClaim(data.number, data.used, data.wanted)
        else:
            shard.quota_claims.pop(data.key, None)
        return
    # Earlier builds kept ledgers without claims, and their logs have decisions on these; ``take`` removes them now.
    ledger = shard.ledgers.setdefault(data.subject, Ledger(data.namespace))
    ledger.shown = data.used
    for verdict in data.verdicts:
        claim = ledger.claims[verdict.by]
        claim.fault = verdict.fault
        if not verdict.fault:
            quota_amounts.add(ledger.totals, claim.used, -1)
            quota_amounts.add(ledger.totals, claim.wanted)
            claim.is_granted = True
            del ledger.open[verdict.by]
    if not ledger.claims and not data.used:
        del shard.ledgers[data.subject]
