"""Audit of override rules: which manifests in members would be different with changed override policies."""

import difflib
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec
from msgspec import Struct, structs

from engine.deciders import dispatch
from engine.deciders.facts import Facts
from engine.deciders.shard_fold import ShardFold
from engine.deciders.state import Binding, Dispatched
from engine.log import port
from engine.overrides import policies, selection
from engine.proof.rules import Rules
from engine.reconcilers import recovery
from engine.works import manifests, template_loading
from events import decisions, keys, topics
from events.shapes import OverrideRef, PolicyRef

EXAMPLES_MAX: Final = 3
"""Maximum number of examples that an audit keeps per reason."""

_DIFF_LINES_MAX: Final = 20


class ManifestDifference(Struct, kw_only=True):
    """A manifest that would be different in a cluster; ``diff`` is cut after 20 lines."""

    key: str
    cluster: str
    diff: list[str]


class ManifestGroup(Struct):
    """Number of works whose manifests differ for one reason, with the first examples."""

    reason: str
    works: int
    examples: list[ManifestDifference]


class OverrideAudit:
    """Compares the recorded manifests of works with those under changed override policies; stores only differences."""

    def __init__(self, log: port.Log, rules: Rules) -> None:
        self._log = log
        self._rules = rules
        self._renderer = manifests.Renderer(log)
        self._changed = selection.Overrides()
        self._policies: dict[PolicyRef, policies.OverridePolicy] = {}
        self._basis: tuple[Facts, int] | None = None
        self._works: dict[str, set[tuple[str, str]]] = {}
        self._examples: dict[str, list[ManifestDifference]] = {}

    @property
    def groups(self) -> list[ManifestGroup]:
        """The differences so far, by reason."""
        return [
            ManifestGroup(reason, len(works), self._examples[reason]) for reason, works in self._works.items()
        ]

    async def take(self, fold: ShardFold, facts: Facts, recorded: recovery.RecordedStep) -> None:
        """Compare the works that a recorded step dispatched; ``fold`` must have applied this step already."""
        for data in recorded.data:
            binding = fold.state.bindings.get(data.subject)
            if isinstance(data, decisions.BindingDispatched) and binding is not None:
                for work in data.works:
                    if work.state == "applied":
                        await self._compare(binding, work.cluster, work, work.overrides, facts)

    async def close(self, fold: ShardFold, facts: Facts) -> None:
        """Compare all works of a shard after its last step: changed policies may affect works that no step resends."""
        for binding in fold.state.bindings.values() if self._rules.overrides else ():
            for cluster, work in binding.works.items():
                if not work.suspended:
                    now = _selected(facts.overrides, binding, cluster, facts)
                    await self._compare(binding, cluster, work, now, facts)

    async def _compare(
        self,
        binding: Binding,
        cluster: str,
        work: decisions.DispatchedWork | Dispatched,
        recorded: tuple[OverrideRef, ...],
        facts: Facts,
    ) -> None:
        if binding.declared is None or facts.fleet.get(cluster) is None:
            return
        overrides = self._overrides(facts)
        refs = _selected(overrides, binding, cluster, facts)
        if selection.are_equal(recorded, refs):
            return
        shard = keys.shard_of(binding.key)
        applied = dispatch.applied(binding.key, cluster, binding.declared, work, shard, (0, 0))
        before = manifests.input_of(structs.replace(applied, overrides=recorded))
        template = await template_loading.manifest_at(self._log, (before.shard, before.offset))
        if template is None:
            return
        rules = [(ref, self._overriders(ref)) for ref in refs]
        old, new = await self._renderer.render(before), manifests.render(template, before, rules)
        if (old.manifest, old.fault) == (new.manifest, new.fault):
            return
        reason = new.fault or "; ".join(_reasons(recorded, refs))
        self._works.setdefault(reason, set()).add((binding.key, cluster))
        examples = self._examples.setdefault(reason, [])
        if len(examples) < EXAMPLES_MAX and all(
            (example.key, example.cluster) != (binding.key, cluster) for example in examples
        ):
            diff = [] if old.fault or new.fault else _diff(old.manifest, new.manifest)
            examples.append(ManifestDifference(key=binding.key, cluster=cluster, diff=diff))

    def _overrides(self, facts: Facts) -> selection.Overrides:
        """Return all override policies, changed as ``Rules.overrides`` demands."""
        basis = facts, facts.ends[topics.POLICIES]
        if self._basis != basis:
            self._basis, self._changed, self._policies = basis, selection.Overrides(), {}
            for known in facts.overrides:
                policy = self._rules.override(known.policy)
                self._policies[policy.ref] = policy
                self._changed.put(selection.KnownOverride(policy, known.offset))
        return self._changed

    def _overriders(self, ref: OverrideRef) -> list[msgspec.Raw]:
        rules = self._policies[ref.policy].rules
        return [rules[index].overriders for index in ref.rules]


def merged(parts: Iterable[Sequence[ManifestGroup]]) -> list[ManifestGroup]:
    """Merge the groups of different shards' audits by reason; return the largest group first."""
    total: dict[str, ManifestGroup] = {}
    for group in (group for part in parts for group in part):
        same = total.setdefault(group.reason, ManifestGroup(group.reason, 0, []))
        same.works += group.works
        same.examples = [*same.examples, *group.examples][:EXAMPLES_MAX]
    return sorted(total.values(), key=lambda group: (-group.works, group.reason))


def _selected(
    overrides: selection.Overrides, binding: Binding, cluster: str, facts: Facts
) -> tuple[OverrideRef, ...]:
    selecting = overrides.policies_for(binding.template) if binding.template else ()
    return overrides.rules_for(selecting, cluster, facts.fleet)


def _reasons(before: Iterable[OverrideRef], after: Iterable[OverrideRef]) -> Iterator[str]:
    """Yield a phrase about each policy whose effect differs."""
    old, new = ({ref.policy: ref for ref in refs} for refs in (before, after))
    for policy in {**old, **new}:
        name = f"{policy.kind} {policy.namespace}/{policy.name}".replace(" /", " ")
        if policy not in new:
            yield f"{name} would not apply"
        elif policy not in old:
            yield f"{name} would apply in addition"
        elif not selection.are_equal((old[policy],), (new[policy],)):
            yield f"{name} would apply with another result"


def _diff(before: bytes, after: bytes) -> list[str]:
    """Return the lines that differ, with one line of context."""
    old, new = (msgspec.json.format(manifest, indent=2).decode().splitlines() for manifest in (before, after))
    # The first two lines contain file names.
    lines = list(difflib.unified_diff(old, new, n=1, lineterm=""))[2:]
    return [*lines[:_DIFF_LINES_MAX], *(["…"] if len(lines) > _DIFF_LINES_MAX else [])]
