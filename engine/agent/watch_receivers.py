"""Track watched objects: the agent's own, a chosen part of each object of a kind, and autoscalers."""

from collections import Counter
from collections.abc import Callable
from typing import Generic, TypeVar

import anyio

from engine.agent import object_preparation
from engine.agent.action_execution import ActionExecutor
from engine.agent.ledger import Identity, Ledger
from engine.agent.reconciliation import Entry, Observed, is_older
from engine.agent.reflector import Follower
from events import keys
from events.kube_objects import KubeObject

_Part = TypeVar("_Part")


class Objects(Follower):
    """Track the objects of one kind with the agent's label; ``on_seen`` gets the keys whose objects changed.

    If the API refuses to list the kind, the agent observes its objects in the responses to its applies.
    """

    def __init__(
        self, kind: tuple[str, str], ledger: Ledger, executor: ActionExecutor, on_seen: Callable[[str], None]
    ) -> None:
        self._kind = kind
        self._ledger = ledger
        self._executor = executor
        self._on_seen = on_seen
        self._before: dict[str, Observed | None] = {}

    def begin(self) -> None:
        """Remember the state before the list: an object applied during the request may be missing from it."""
        self._before = {key: entry.seen for key, entry in self._ledger.entries() if self._is_of_kind(entry)}

    def listed(self, items: list[KubeObject], version: str = "") -> None:
        listed_keys: set[str] = set()
        for item in items:
            key = self._key(item)
            if key is not None:
                listed_keys.add(key)
            self.changed(item, is_gone=False)
        # Objects missing from the list are gone only if unchanged since ``begin``; others were applied or seen
        # meanwhile.
        for key, before in self._before.items():
            entry = self._ledger.get(key)
            if entry is not None and key not in listed_keys and entry.seen is before:
                deleted_uid = entry.applied.uid if entry.applied is not None else ""
                entry.seen = Observed(deleted_uid=deleted_uid, version=version)
                self._on_seen(key)
        self._before = {}

    def changed(self, value: KubeObject, *, is_gone: bool) -> None:
        key = self._key(value)
        entry = self._ledger.get(key) if key is not None else None
        if key is None or entry is None:
            return
        applied = entry.applied
        if applied is None:
            # The watch may deliver the object before the response to its first apply; ``apply`` keeps the newer state.
            if entry.ref is not None and self._executor.has_own_marks(value):
                is_retained = object_preparation.retains_replicas(value)
                seen = self._executor.observe(value, entry.ref, entry.work.reading, is_retained=is_retained)
                entry.seen = _deleted(seen) if is_gone else seen
            return
        seen = self._executor.observe(value, applied.ref, entry.work.reading, is_retained=applied.is_retained)
        if entry.seen is not None and is_older(seen, entry.seen):
            return
        if is_gone:
            # Ignore a late DELETED of an earlier object of that name: the known object has another uid.
            if entry.seen is not None and entry.seen.uid not in ("", seen.uid):
                return
            seen = _deleted(seen)
        if seen != entry.seen:
            entry.seen = seen
            self._on_seen(key)

    def _key(self, value: KubeObject) -> str | None:
        return self._ledger.at(identity_of(self._kind, value))

    def _is_of_kind(self, entry: Entry) -> bool:
        ref = entry.applied.ref if entry.applied is not None else None
        return ref is not None and (ref.api_version, ref.kind) == self._kind


def _deleted(seen: Observed) -> Observed:
    return Observed(deleted_uid=seen.uid, version=seen.version)


class Tracked(Follower, Generic[_Part]):
    """Keeps in ``parts`` what ``read`` returns for each object of a kind, by ``key``; omits objects with None.

    ``on_change`` is called when the parts change.
    """

    def __init__(
        self,
        key: Callable[[KubeObject], str],
        read: Callable[[KubeObject], _Part | None],
        on_change: Callable[[], None],
    ) -> None:
        self.parts: dict[str, _Part] = {}
        self.is_known = False
        """Whether the first list has ended: received, or refused by the API."""
        self._key = key
        self._read = read
        self._on_change = on_change

    def listed(self, items: list[KubeObject], _version: str = "") -> None:
        parts = {self._key(item): self._read(item) for item in items}
        self.parts = {key: part for key, part in parts.items() if part is not None}
        self.is_known = True
        self._on_change()

    def changed(self, value: KubeObject, *, is_gone: bool) -> None:
        key, part = self._key(value), None if is_gone else self._read(value)
        if part == self.parts.get(key):
            return
        if part is None:
            self.parts.pop(key, None)
        else:
            self.parts[key] = part
        self._on_change()

    def refused(self) -> None:
        self.is_known = True
        self._on_change()


class Scalers(Follower):
    """Track HorizontalPodAutoscalers; ``on_change`` gets each object that an autoscaler starts or stops scaling."""

    def __init__(self, on_change: Callable[[Identity], None]) -> None:
        self._found: dict[str, Identity] = {}
        # How many autoscalers control each object.
        self._targets: Counter[Identity] = Counter()
        self._on_change = on_change
        self._known = anyio.Event()

    def scales(self, identity: Identity) -> bool:
        """Whether an autoscaler controls the object's replicas."""
        return identity in self._targets

    async def wait_until_listed(self, until_s: float) -> bool:
        """Wait until the autoscalers are listed, or the API has refused to list them; False if ``until_s`` passes."""
        with anyio.CancelScope(deadline=until_s):
            await self._known.wait()
        return self._known.is_set()

    def listed(self, items: list[KubeObject], _version: str = "") -> None:
        before, self._found = self._found, {item.uid: _target(item) for item in items}
        self._targets = Counter(self._found.values())
        for identity in set(before.values()) ^ self._targets.keys():
            self._on_change(identity)
        self._known.set()

    def refused(self) -> None:
        self._known.set()

    def changed(self, value: KubeObject, *, is_gone: bool) -> None:
        before, now = self._found.pop(value.uid, None), None if is_gone else _target(value)
        if now is not None:
            self._found[value.uid] = now
            self._targets[now] += 1
        if before is not None:
            self._targets[before] -= 1
            if not self._targets[before]:
                del self._targets[before]
        if before != now:
            for identity in (before, now):
                if identity is not None:
                    self._on_change(identity)


def identity_of(kind: tuple[str, str], value: KubeObject) -> Identity:
    """Identity of an object (group, kind, namespace, name); ``kind`` is a pair of apiVersion and kind."""
    return keys.group_of(kind[0]), kind[1], value.namespace, value.name


def _target(value: KubeObject) -> Identity:
    group = keys.group_of(value.text_at("spec", "scaleTargetRef", "apiVersion"))
    kind, name = (value.text_at("spec", "scaleTargetRef", field) for field in ("kind", "name"))
    return group, kind, value.namespace, name
