"""Checker of override policies: an independent model of which rules apply, and of the resulting manifests."""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from engine.deciders.state import Binding
from events import clusters, policies, shapes, specs
from events.validation import verdicts
from tests.simulation import world

_KINDS = ("ClusterOverridePolicy", "OverridePolicy")
_Held = tuple[str, str, tuple[int, ...]]
"""Kind and name of a policy, and the indexes of its rules that apply."""


class RestState(msgspec.Struct):
    """The state of a stable world; ``written`` has every override policy ever applied, by offset."""

    templates: dict[str, dict[str, Any]] = {}
    policies: dict[tuple[str, str], dict[str, Any]] = {}
    written: dict[int, dict[str, Any]] = {}
    labels: dict[str, dict[str, str]] = {}


def state_at_rest(taken: Iterable[verdicts.Taken]) -> RestState:
    """Fold accepted inputs."""
    facts = RestState()
    for verdict in taken:
        match verdict.data:
            case specs.TemplateApplied(manifest=raw):
                facts.templates[verdict.record.key] = msgspec.json.decode(raw)
            case specs.TemplateDeleted():
                facts.templates.pop(verdict.record.key, None)
            case policies.ConfigurationApplied(manifest=raw):
                value = msgspec.json.decode(raw)
                if value["kind"] in _KINDS:
                    facts.policies[value["kind"], value["metadata"]["name"]] = value
                    facts.written[verdict.record.offset] = value
            case policies.ConfigurationDeleted(object=ref):
                facts.policies.pop((ref.kind, ref.name), None)
            case (
                clusters.ClusterJoined(name=name, labels=labels)
                | clusters.ClusterLabelled(name=name, labels=labels)
            ):
                facts.labels[name] = labels
            case clusters.ClusterLeft(name=name):
                facts.labels.pop(name, None)
            case _:
                pass
    return facts


def check(played: world.World, taken: Iterable[verdicts.Taken]) -> list[str]:
    """Each work names the rules that apply; each member runs their result, or reports why not."""
    facts = state_at_rest(taken)
    running = played.running()
    violations: list[str] = []
    for fold in played.worker.folds:
        for key, binding in fold.state.bindings.items():
            violations += _work_violations(facts, key, binding)
            violations += _run(facts, binding, running)
    return violations


def _work_violations(facts: RestState, key: str, binding: Binding) -> Iterator[str]:
    if binding.claim is None or binding.template is None:
        return
    placed = dict(binding.clusters)
    for name, work in binding.works.items():
        if work.suspended or name not in facts.labels or name not in placed:
            continue
        expected = list(_holding(facts, facts.templates[key], name))
        dispatched = [(ref.kind, ref.name, ref.rules) for ref in work.overrides]
        if dispatched != expected:
            yield f"overrides: {key} in {name} has {dispatched}, what holds is {expected}"


def _holding(facts: RestState, template: dict[str, Any], cluster: str) -> Iterator[_Held]:
    chosen = [
        (kind, close, name, policy)
        for (kind, name), policy in facts.policies.items()
        if (close := _closeness(kind, policy["spec"]["resourceSelectors"], template))
    ]
    for kind, _, name, policy in sorted(chosen, key=lambda entry: entry[:3]):
        rules = tuple(
            index
            for index, rule in enumerate(policy["spec"]["overrideRules"])
            if _is_meant(rule.get("targetCluster", {}), cluster, facts.labels[cluster])
        )
        if rules:
            yield kind, name, rules


def _closeness(kind: str, selectors: list[dict[str, Any]], template: dict[str, Any]) -> int:
    if kind == "OverridePolicy" and "namespace" not in template["metadata"]:
        return 0
    best = 0 if selectors else 1
    for selector in selectors:
        if selector["kind"] != template["kind"]:
            continue
        labels = selector.get("labelSelector", {}).get("matchLabels", {})
        if "name" in selector:
            best = max(best, 3 if selector["name"] == template["metadata"]["name"] else 0)
        elif labels.items() <= template["metadata"]["labels"].items():
            best = max(best, 2 if labels else 1)
    return best


def _is_meant(target: dict[str, Any], cluster: str, labels: dict[str, str]) -> bool:
    required_labels = target.get("labelSelector", {}).get("matchLabels", {})
    return cluster in target.get("clusterNames", [cluster]) and required_labels.items() <= labels.items()


def _run(facts: RestState, binding: Binding, running: dict[tuple[str, str], int]) -> Iterator[str]:
    for name, work in binding.works.items():
        if work.suspended or name not in facts.labels or not work.overrides:
            continue
        where = (name, binding.key)
        report = binding.reports.get(name)
        fault = report.fault if report else ""
        replicas = outcome(facts, work.overrides, binding.key, work.replicas)
        if (replicas is None) != bool(fault):
            yield f"overrides: {where} says {fault!r}, what comes of it is {replicas}"
        elif replicas is not None and running.get(where) != max(replicas, 0):
            yield f"overrides: {where} runs {running.get(where)}, what comes of it is {replicas}"


def outcome(
    facts: RestState, overrides: tuple[shapes.OverrideRef, ...], key: str, replicas: int
) -> int | None:
    """Return the replicas after the rules, or None if a rule cannot be applied."""
    for ref in overrides:
        rules = facts.written[ref.offset]["spec"]["overrideRules"]
        for index in ref.rules:
            for patch in rules[index]["overriders"].get("plaintext", ()):
                if patch["path"] == "/spec/nowhere":
                    return None
                if patch["path"] == "/spec/replicas":
                    if not key.endswith(("-deployment", "-statefulset")):
                        return None
                    replicas = patch["value"]
    return replicas
