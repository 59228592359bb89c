"""``describe``: one object, its placement, and its latest events."""

from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec import Struct

from engine.cli import (
    explain,
    failures,
    options,
    output,
    server_reads,
    set_properties,
    table_rows,
    three_way,
    yaml_output,
)
from engine.http import summaries
from engine.http.query.response_types import Entry
from engine.objects import bindings
from engine.objects.bindings import Binding
from events import shapes
from events.kube_objects import KubeObject
from events.validation import known_kinds as kinds
from events.vocabulary import EXECUTION_NAMESPACE_PREFIX

_EVENTS_MAX: Final = 20


def describe(
    kind: options.Kind,
    name: options.Name = "",
    /,
    *,
    as_of: options.AsOf = "",
    scope: options.NamespaceOption = options.NAMESPACE,
    server: options.Server = options.SERVER,
) -> None:
    kind, name = set_properties.split(kind, name)
    if server_reads.is_pod(kind):
        _describe_pod(server_reads.Selection(scope.namespace, name, as_of=as_of), server)
        return
    with server.client() as client:
        server_reads.warn_of_observer(client)
        known_kind = server_reads.kind_of(kind, client)
        templates = known_kind.route == "template" and known_kind not in kinds.DERIVED
        # All works of a workload have the same name, each in the namespace of its cluster: search all namespaces.
        is_work = known_kind.kind == "Work" and not scope.namespace.startswith(EXECUTION_NAMESPACE_PREFIX)
        selection = server_reads.Selection("" if is_work else scope.namespace, name, as_of=as_of)
        document, *others = server_reads.documents(client, known_kind, selection)
        if others:
            namespaces = ", ".join(other.namespace for other in (document, *others))
            raise failures.usage(f"{kind} {name} exists in {namespaces}", "name one of these namespaces: -n")
        binding = server_reads.binding_of(client, document, as_of) if templates else None
        events = explain.read_timeline(
            client, server_reads.key_of(known_kind, document.namespace, name), as_of
        )
    shown = three_way.as_read(document)
    if server.json:
        output.json(
            {
                "object": shown.document,
                "binding": None if binding is None else binding.document,
                "events": events,
            }
        )
        return
    lines: list[str] = []
    if templates:
        placement = [_unplaced(events)] if binding is None else _placement(bindings.of(binding))
        lines = [*placement, *_overrides(events)]
    _print(shown, lines, has_events=bool(events))
    if events:
        explain.show_entries(events[-_EVENTS_MAX:], is_named=False)


def _describe_pod(selection: server_reads.Selection, server: options.Server) -> None:
    """Print a pod and its Events, as its member has them."""
    from engine.cli import pod_tables  # noqa: PLC0415  # loads the simulation; other kinds do not need it

    namespace, name = selection.namespace, selection.name
    with server.client() as client:
        pod, *others = pod_tables.pods(client, [name], selection)
        if others:
            names = ", ".join(other.cluster for other in (pod, *others))
            remedy = f"describe one: kubectl --context {pod.cluster} describe pod {name} -n {namespace}"
            raise failures.usage(f"pod {name} exists in {names}", remedy)
        document, events = pod_tables.described(client, pod)
    shown = three_way.as_read(document)
    if server.json:
        output.json(
            {"object": shown.document, "binding": None, "events": [event.document for event in events]}
        )
        return
    _print(shown, [f"Cluster: {pod.cluster}"], has_events=bool(events))
    if events:
        table = table_rows.listing(pod_tables.EVENT, events, server_reads.now_ms())
        table_rows.show_table(table, wide=False)


def _print(shown: KubeObject, lines: Sequence[str], *, has_events: bool) -> None:
    """Print an object, lines about it, and the heading of its events."""
    output.print_line(yaml_output.dump(shown.document).rstrip())
    if lines:
        output.print_line("")
    for line in lines:
        output.print_line(output.clean(line))
    output.print_line("")
    output.print_line("Events:" if has_events else "Events: none")


class _Waiting(Struct, frozen=True):
    policy: shapes.PolicyRef
    fault: str = ""


def _unplaced(events: list[Entry]) -> str:
    """A line about why a template has no placement."""
    for event in reversed(events):
        match summaries.event_name(event.type):
            case "claim-refused" | "template-marked":
                waiting = msgspec.json.decode(event.data or b"", type=_Waiting)
                if waiting.fault:
                    return f"Scheduled: no; the policy {waiting.policy.name} was not applied: {waiting.fault}"
                return f"Scheduled: no; the lazy policy {waiting.policy.name} places it with its next write"
            case "binding-released" | "binding-withdrawn" | "template-deleted":
                break
            case _:
                pass
    return "Scheduled: no; no policy selects it"


def _placement(binding: Binding) -> list[str]:
    """Lines about the placement of a template."""
    conditions = [
        f"{condition.type}: {condition.status} ({condition.reason}) {condition.message}"
        for condition in binding.status.conditions
    ]
    faults = [
        f"Not applied in {report.cluster_name}: {report.applied_message}"
        for report in binding.status.aggregated_status
        if report.applied_message
    ]
    needs = [f"Required by: {need.namespace}/{need.name}" for need in binding.spec.required_by]
    evictions = [
        f"Evicted from: {task.from_cluster} ({task.reason})" for task in binding.spec.graceful_eviction_tasks
    ]
    placement = f"Clusters: {table_rows.spread(binding) or 'none'}"
    return [placement, *evictions, *needs, *conditions, *faults]


class _Work(Struct, frozen=True):
    cluster: str = ""
    overrides: tuple[shapes.OverrideRef, ...] = ()


def _overridden(event: Entry) -> _Work:
    return msgspec.json.decode(event.data or b"{}", type=_Work)


def _overrides(events: list[Entry]) -> list[str]:
    """Lines about the override policies in each cluster's newest work."""
    policies: dict[str, str] = {}
    for event in events:
        match summaries.event_name(event.type):
            case "work-applied":
                work = _overridden(event)
                policies[work.cluster] = ", ".join(map(summaries.override, work.overrides))
            case "work-removed":
                policies.pop(_overridden(event).cluster, None)
            case _:
                pass
    return [f"Overridden in {name} by {policies[name]}" for name in sorted(policies) if policies[name]]
