"""Checker of rebalancers: a generation finishes once, after the fresh decisions that it requested.

Bindings whose scheduling is suspended, or that another scheduler places, get no decision, as in Karmada.
"""

from collections import Counter
from collections.abc import Iterable

from events import codec, decisions, rebalance_decisions, topics
from events.records import StoredRecord
from events.validation import manifests, verdicts
from tests.simulation.unscheduled import Unscheduled


def check(records: list[StoredRecord]) -> list[str]:
    """Check invariant 7."""
    progress, bindings = _Progress(), _Bindings()
    for record in records:
        decoded = codec.decode(record)
        if record.topic == topics.DECISIONS and isinstance(decoded, codec.Decoded):
            bindings.take(decoded.data)
            progress.take(decoded.data, bindings.answered, str(record.position))
    return progress.violations + [
        f"7: {uid} never finished {generation}"
        for uid, generation in progress.started.items()
        if not progress.finished[(uid, generation)] and _is_alive(records, uid)
    ]


class _Bindings:
    """Which rebalancers' requests have been followed by a decision on the binding, or need none."""

    def __init__(self) -> None:
        self.answered: set[tuple[str, str]] = set()
        """Uids of rebalancers and keys of bindings."""
        self._unscheduled = Unscheduled()
        self._triggered: dict[str, set[str]] = {}

    def take(self, data: object) -> None:
        self._unscheduled.take(data)
        if not isinstance(data, decisions.BindingDecision):
            return
        key = data.key
        if isinstance(data, decisions.RescheduleTriggered):
            self._triggered.setdefault(key, set()).add(data.uid)
        # A request may wait for the answer of a group or quota until its binding is suspended.
        is_decided = isinstance(data, decisions.ScheduleDecided | decisions.ScheduleFailed)
        if is_decided or key in self._unscheduled:
            self.answered |= {(uid, key) for uid in self._triggered.pop(key, set())}


class _Progress:
    """The progress of all rebalancers, by uid, and its violations."""

    def __init__(self) -> None:
        self.started: dict[str, int] = {}
        self.finished: Counter[tuple[str, int]] = Counter()
        self.violations: list[str] = []
        self._awaited: set[tuple[str, str]] = set()

    def take(self, data: object, answered: set[tuple[str, str]], position: str) -> None:
        match data:
            case rebalance_decisions.RebalanceStarted(uid=uid, asked=refs, dropped=dropped):
                self.started[uid] = data.generation
                self._awaited -= {(uid, str(ref)) for ref in dropped}
                self._awaited |= {(uid, str(ref)) for ref in refs}
            case rebalance_decisions.WorkloadRebalanced(uid=uid, workload=ref, result=result):
                self._awaited.discard((uid, str(ref)))
                if result == "Successful" and (uid, ref.binding_key) not in answered:
                    self._add(f"{ref.name} counts as Successful without a decision", position)
            case rebalance_decisions.RebalanceFinished(uid=uid, generation=generation):
                self.finished[(uid, generation)] += 1
                if self.finished[(uid, generation)] > 1:
                    self._add(f"{uid} finished generation {generation} again", position)
                if any(waiting == uid for waiting, _ in self._awaited):
                    self._add(f"{uid} finished while answers are awaited", position)
            case _:
                pass

    def _add(self, violation: str, position: str) -> None:
        self.violations.append(f"7: {violation} ({position})")


def _is_alive(records: Iterable[StoredRecord], uid: str) -> bool:
    """Whether the rebalancer with this uid exists at the end of the log."""
    folds: dict[int, verdicts.PartitionFold] = {}
    for record in records:
        if record.topic == topics.SPECS:
            shard = record.partition
            if shard not in folds:
                folds[shard] = verdicts.PartitionFold(
                    verdicts.PartitionState(topics.SPECS, shard), manifests.check
                )
            folds[shard].take(record)
    return any(head.uid == uid for fold in folds.values() for head in fold.state.heads.values())
