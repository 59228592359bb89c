"""Which bindings get no decisions: a client suspended their scheduling, or another scheduler places them."""

from events import decisions
from tests.simulation.moves import suspensions


class Unscheduled:
    """Keys of the bindings that get no scheduling decisions now; it follows the decisions about all bindings."""

    def __init__(self) -> None:
        self._suspended: set[str] = set()
        self._foreign: set[str] = set()

    def __contains__(self, key: str) -> bool:
        return key in self._suspended or key in self._foreign

    def take(self, data: object) -> None:
        match data:
            case decisions.BindingSuspended(key=key, scheduling=is_suspended):
                _put(self._suspended, key, is_member=is_suspended)
            case decisions.BindingClaimed(key=key, scheduler=scheduler):
                _put(self._foreign, key, is_member=scheduler == suspensions.OTHER)
            case decisions.BindingWithdrawn(key=key):
                self._suspended.discard(key)
                self._foreign.discard(key)
            case _:
                pass


def _put(keys: set[str], key: str, *, is_member: bool) -> None:
    if is_member:
        keys.add(key)
    else:
        keys.discard(key)
