"""Index of a member's objects by their owners, to find the dependents of a changed owner."""

from collections.abc import Iterable

from engine.simulation.state import MemberState


def record(state: MemberState, key: str, owners: Iterable[str]) -> None:
    """Record the keys of an object's owners, and queue the object for the garbage collector."""
    _forget_owners(state, key)
    for owner in owners:
        state.owned.setdefault(owner, {})[key] = None
        state.owners.setdefault(key, {})[owner] = None
    state.to_collect[key] = None


def forget(state: MemberState, key: str) -> None:
    """Remove a deleted object; queue its dependents, and owners that may wait for its deletion, for the collector."""
    state.to_collect.pop(key, None)
    state.to_collect.update(state.owners.get(key, {}))
    _forget_owners(state, key)
    touch(state, key)


def touch(state: MemberState, key: str) -> None:
    """Queue the dependents of an object, and of its pods, for the garbage collector: the owner may no longer exist."""
    if state.owned and (owned := state.owned.get(key)):
        state.to_collect.update(owned)


def _forget_owners(state: MemberState, key: str) -> None:
    for owner in state.owners.pop(key, {}):
        owned = state.owned[owner]
        del owned[key]
        if not owned:
            del state.owned[owner]
