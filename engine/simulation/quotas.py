"""ResourceQuotas of a member: they refuse pods that would exceed them, and count what existing pods use."""

from collections.abc import Iterator, Mapping
from typing import Final, TypedDict

from engine.kubeapi.values import quantity
from engine.simulation import capacity
from engine.simulation.state import MemberState, NamespaceQuotas, Workload
from engine.works import quotas, templates
from engine.works.quotas import Quota
from engine.works.templates import Template
from events import clusters, keys, shapes, vocabulary
from events.validation import known_kinds

_COUNT: Final = "count/"


def record(state: MemberState, key: str, ref: shapes.WorkloadRef, quota: Quota | None) -> None:
    """Record an object if it is a quota, and count the namespace's pods; ``quota`` is None for other objects."""
    forget(state, key, ref.namespace)
    if quota is None:
        return
    limited = state.quotas.setdefault(ref.namespace, NamespaceQuotas())
    limited.quotas[key] = ref.name, quota
    used = limited.used[key] = dict.fromkeys(quota.hard, 0)
    for template, count in _pods(state, ref.namespace):
        if quota.counts(template.pod):
            _add(used, template, count)
    limited.is_freed = state.capacity_changed = True


def forget(state: MemberState, key: str, namespace: str) -> None:
    """Forget an object if it is a quota."""
    limited = state.quotas.get(namespace)
    if limited is not None and limited.quotas.pop(key, None) is not None:
        del limited.used[key]
        limited.is_freed = state.capacity_changed = True


def count(state: MemberState, namespace: str, template: Template, pods: int) -> None:
    """Add ``pods`` created pods to the use of a namespace's quotas; a negative number removes pods."""
    limited = state.quotas.get(namespace)
    if limited is not None:
        for key, (_, quota) in limited.quotas.items():
            if quota.counts(template.pod):
                _add(limited.used[key], template, pods)
        limited.is_freed = limited.is_freed or pods < 0
        state.capacity_changed = True
        touch(state, namespace)


def touch(state: MemberState, namespace: str) -> None:
    """Queue reports of a namespace's quotas; call it when an object that they may count was created or removed."""
    if state.quotas and (limited := state.quotas.get(namespace)) is not None:
        state.dirty.update(dict.fromkeys(key for key in limited.quotas if key in state.workloads))


def allowed(state: MemberState, workload: Workload, pods: int) -> int:
    """Return how many of ``pods`` new pods of a workload the quotas allow; refused pods are tried again later."""
    limited = state.quotas.get(workload.ref.namespace)
    if limited is None:
        return pods
    template, least = workload.template, pods
    for key, (_, quota) in limited.quotas.items():
        for resource, hard in quota.hard.items() if quota.counts(template.pod) else ():
            use = quotas.use_of_pod(resource, template.amounts, template.limits)
            if use is not None:
                free = max(hard - limited.used[key][resource], 0)
                least = min(least, free // use if use else 0)
    if least < pods:
        limited.refused[workload.key] = None
    else:
        limited.refused.pop(workload.key, None)
    return least


def free(state: MemberState) -> Iterator[clusters.NamespaceQuota]:
    """Yield, for each namespace with quotas, the amounts left for further pods; quotas with scopes are ignored."""
    for namespace, limited in sorted(state.quotas.items()):
        least: dict[str, int] = {}
        for key, (_, quota) in limited.quotas.items():
            for resource, hard in () if quota.scopes else quota.hard.items():
                if name := quotas.requested(resource):
                    left = min(max(hard - limited.used[key][resource], 0), capacity.AMOUNT_MAX)
                    least[name] = min(least.get(name, left), left)
        if least:
            yield clusters.NamespaceQuota(
                namespace=namespace, free={name: _text(name, left) for name, left in sorted(least.items())}
            )


def clear_refused(state: MemberState, workload: Workload) -> None:
    """Record that a workload has all its pods: it no longer waits for quotas to allow some."""
    limited = state.quotas.get(workload.ref.namespace)
    if limited is not None:
        limited.refused.pop(workload.key, None)


def queue_refused(state: MemberState, workload: Workload) -> None:
    """Record that quotas refused pods of a workload; the next turn creates those that the quotas then allow."""
    limited = state.quotas[workload.ref.namespace]
    limited.refused[workload.key] = None
    limited.is_freed = True


def is_limited(state: MemberState, namespace: str) -> bool:
    return namespace in state.quotas


def has_refused_pods(state: MemberState, workload: Workload) -> bool:
    """Whether quotas refused pods of a workload."""
    limited = state.quotas.get(workload.ref.namespace)
    return limited is not None and workload.key in limited.refused


def with_refused_pods(state: MemberState) -> Iterator[Workload]:
    """Yield the workloads whose pods were refused."""
    for limited in state.quotas.values():
        for key in limited.refused:
            if (workload := state.workloads.get(key)) is not None:
                yield workload


def freed(state: MemberState) -> list[str]:
    """Return the keys of the workloads whose refused pods may be allowed now, in the order of the refusals."""
    result: list[str] = []
    for namespace, limited in list(state.quotas.items()):
        if limited.is_freed:
            limited.is_freed = False
            result += limited.refused
            if not limited.quotas:
                del state.quotas[namespace]
    return result


def refusal(state: MemberState, namespace: str, template: Template) -> str:
    """Return Kubernetes' message if the quotas of a namespace refuse one more pod; empty if they allow it."""
    limited = state.quotas.get(namespace) or NamespaceQuotas()
    for key, (name, quota) in sorted(limited.quotas.items(), key=_name):
        if not quota.counts(template.pod):
            continue
        uses = {
            resource: quotas.use_of_pod(resource, template.amounts, template.limits)
            for resource in quota.hard
        }
        if missing := sorted(resource for resource, use in uses.items() if use == 0):
            containers = f" for: {','.join(template.containers)}" if template.containers else ""
            return f"failed quota: {name}: must specify {','.join(missing)}{containers}"
        if reason := _excess(name, uses, limited.used[key], quota):
            return reason
    return ""


def refusal_of(state: MemberState, workload: Workload) -> str:
    """Return why pods of a workload are missing; empty if none is missing."""
    if not has_refused_pods(state, workload):
        return ""
    reason = refusal(state, workload.ref.namespace, workload.template) or "exceeded quota"
    return f'pods "{workload.ref.name}-" is forbidden: {reason}'


def refusal_of_object(state: MemberState, ref: shapes.WorkloadRef) -> str:
    """Return why the quotas of a namespace refuse one more object of a kind; empty if they allow it."""
    limited = state.quotas.get(ref.namespace) or NamespaceQuotas()
    for _, (name, quota) in sorted(limited.quotas.items(), key=_name):
        counted = [
            resource for resource in _counted_names(ref) if resource in quota.hard and not quota.scopes
        ]
        used = {resource: _objects(state, ref.namespace, resource) for resource in counted}
        if reason := _excess(name, dict.fromkeys(counted, quantity.NANO), used, quota):
            return reason
    return ""


class _Status(TypedDict):
    hard: dict[str, str]
    used: dict[str, str]


def status(state: MemberState, namespace: str, quota: Quota) -> _Status:
    limited = state.quotas.get(namespace) or NamespaceQuotas()
    counted = (
        limited.used[key] for key, (_, limited_quota) in limited.quotas.items() if limited_quota == quota
    )
    of_pods = next(counted, dict[str, int]())
    used = {
        name: _objects(state, namespace, name)
        if quotas.use_of_pod(name, (), ()) is None
        else of_pods.get(name, 0)
        for name in quota.hard
    }
    return {"hard": quota.texts, "used": {name: _text(name, nano) for name, nano in used.items()}}


def _excess(name: str, uses: Mapping[str, int | None], used: dict[str, int], quota: Quota) -> str:
    """Return Kubernetes' message if one more object, which uses the amounts ``uses``, exceeds a quota; else empty."""
    over = {
        resource: use for resource, use in uses.items() if use and used[resource] + use > quota.hard[resource]
    }
    if not over:
        return ""
    names = sorted(over)
    requested, taken, limited = (
        ",".join(f"{resource}={text}" for resource, text in zip(names, texts, strict=True))
        for texts in (
            [_text(resource, over[resource]) for resource in names],
            [_text(resource, used[resource]) for resource in names],
            [quota.texts[resource] for resource in names],
        )
    )
    return f"exceeded quota: {name}, requested: {requested}, used: {taken}, limited: {limited}"


def _text(resource: str, nano: int) -> str:
    return quantity.of_nano(resource.rpartition(".")[2], nano)


def _name(entry: tuple[str, tuple[str, Quota]]) -> str:
    return entry[1][0]


def _add(used: dict[str, int], template: Template, pods: int) -> None:
    for resource in used:
        used[resource] += (quotas.use_of_pod(resource, template.amounts, template.limits) or 0) * pods


def _pods(state: MemberState, namespace: str) -> Iterator[tuple[Template, int]]:
    for workload in state.workloads.values():
        if workload.ref.namespace == namespace and workload.replicas is not None:
            yield workload.template, workload.updated
            yield from ((former.template, len(former.slots)) for former in workload.former_pods)
    for item in state.unmanaged.values():
        if item.ref.namespace == namespace and (item.ref.api_version, item.ref.kind) == vocabulary.POD:
            yield templates.read(item.manifest), 1


def _counted_names(ref: shapes.WorkloadRef) -> tuple[str, ...]:
    """Return the names that a quota may use for the number of objects of a kind, such as ``count/jobs.batch``."""
    group = keys.group_of(ref.api_version)
    plural = known_kinds.plural_of(ref.api_version, ref.kind)
    return (f"{_COUNT}{plural}.{group}",) if group else (f"{_COUNT}{plural}", plural)


def _objects(state: MemberState, namespace: str, name: str) -> int:
    """Return the number of objects that a quota counts under a name, in billionths."""
    managed = (workload.ref for workload in state.workloads.values() if not workload.is_unmanaged)
    refs = [*managed, *(item.ref for item in state.unmanaged.values())]
    return quantity.NANO * sum(ref.namespace == namespace and name in _counted_names(ref) for ref in refs)
