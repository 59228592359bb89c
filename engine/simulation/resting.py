"""Workloads of modelled clusters that are restored when a work comes for them, so that a fork costs little."""

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from engine.simulation import member_history, pod_priorities, recovery
from engine.simulation.state import MemberState
from engine.works.template_loading import TemplateLoader, TemplatePosition
from engine.works.templates import EMPTY, Template


class Called(NamedTuple):
    """A workload for which a work came."""

    member: str
    key: str


class RestingWorkloads:
    """The resting workloads of all members."""

    def __init__(self, loader: TemplateLoader, histories: Mapping[str, member_history.History]) -> None:
        self._loader = loader
        self._resting = {name: history.resting for name, history in histories.items() if history.resting}

    async def wake(self, states: Mapping[str, MemberState], called: Iterable[Called], at_ms: int) -> None:
        """Restore the workloads for which works came."""
        result: dict[str, member_history.History] = {}
        for member, key in called:
            resting = self._resting.get(member, {}).pop(key, None)
            if resting is not None:
                history = result.setdefault(member, member_history.History())
                history.workloads[key] = resting.history(member, key)
                if (report := resting.reported(member, key)) is not None:
                    history.reports[key] = report
        positions = {name: dict(member_history.positions(history)) for name, history in result.items()}
        loaded = await self._loader.load(each for needed in positions.values() for each in needed.values())
        for name, history in result.items():
            _restore(states[name], history, positions[name], loaded, at_ms)

    async def wake_around(
        self,
        states: Mapping[str, MemberState],
        names: Collection[str],
        contents: Iterable[Template],
        at_ms: int,
    ) -> None:
        """Restore all workloads of these members that have, or may get, objects that act on other workloads."""
        if self._resting:
            gets = any(map(_acts_on_others, contents))
            acted_on = [name for name in names if gets or _has_such(states[name])]
            await self.wake_all(states, acted_on, at_ms)

    async def wake_all(self, states: Mapping[str, MemberState], names: Iterable[str], at_ms: int) -> None:
        """Restore all workloads of some members."""
        called = [Called(name, key) for name in names for key in self._resting.get(name, ())]
        await self.wake(states, called, at_ms)


def running_templates(
    states: Mapping[str, MemberState], called: Iterable[Called]
) -> dict[TemplatePosition, Template]:
    """Return templates that the members already run: most works change only the number of replicas."""
    running = (states[member].workloads.get(key) for member, key in called)
    return {
        (workload.shard, workload.offset): workload.template
        for workload in running
        if workload is not None and workload.template is not EMPTY and not workload.overrides
    }


def _acts_on_others(template: Template) -> bool:
    """Whether an object affects pods of other workloads in its cluster, or its own pods may displace them."""
    of_others = template.rank, template.budget, template.scaler, template.quota
    return bool(template.priority_class) or any(each is not None for each in of_others)


def _has_such(state: MemberState) -> bool:
    return bool(state.quotas or state.scalers) or state.budgets is not None or pod_priorities.is_used(state)


def _restore(
    state: MemberState,
    history: member_history.History,
    positions: Mapping[str, TemplatePosition],
    loaded: Mapping[TemplatePosition, Template],
    at_ms: int,
) -> None:
    sums, is_changed = dict(state.capacity.running), state.capacity_changed
    templates = {key: loaded[position] for key, position in positions.items()}
    recovery.restore_workloads(state, history, templates, at_ms)
    # The cluster's own reports have counted them already.
    state.capacity.running = sums
    state.capacity_changed = is_changed
