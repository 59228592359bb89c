"""Index of a member's objects by their owners, so that a change of an owner finds what it owns."""

from collections.abc import Iterable

from engine.simulation.state import MemberState


def record(state: MemberState, key: str, owners: Iterable[str]) -> None:
    """Record the keys of an object's owners, and have the object checked."""
    _forget_owners(state, key)
    for owner in owners:
        state.owned.setdefault(owner, {})[key] = None
        state.owners.setdefault(key, {})[owner] = None
    state.to_collect[key] = None


def forget(state: MemberState, key: str) -> None:
    """Forget a deleted object; have those checked that it owns, and its owners, which may wait for its deletion."""
    state.to_collect.pop(key, None)
    state.to_collect.update(state.owners.get(key, {}))
    _forget_owners(state, key)
    touch(state, key)


def touch(state: MemberState, key: str) -> None:
    """Have the objects checked that an object or one of its pods owns, since it may be another one now."""
    if state.owned and (found := state.owned.get(key)):
        state.to_collect.update(found)


def _forget_owners(state: MemberState, key: str) -> None:
    for owner in state.owners.pop(key, {}):
        found = state.owned[owner]
        del found[key]
        if not found:
            del state.owned[owner]
