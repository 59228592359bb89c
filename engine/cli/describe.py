"""``describe``: one object, its placement, and its latest events."""

from typing import Final

from engine.cli import (
    explain,
    options,
    output,
    server_reads,
    set_properties,
    table_rows,
    three_way,
    yaml_output,
)
from engine.http import summaries
from events.json_values import Json, object_at, objects_at
from events.validation import known_kinds as kinds

_EVENTS_MAX: Final = 20


def describe(
    kind: str,
    name: str = "",
    /,
    *,
    as_of: options.AsOf = "",
    place: options.NamespaceOption = options.PLACE,
    server: options.Server = options.SERVER,
) -> None:
    """Show one object with its decisions and events."""
    kind, name = set_properties.split(kind, name)
    with server.client() as client:
        known_kind = server_reads.kind_of(kind, client)
        templates = known_kind.route == "template" and known_kind not in kinds.DERIVED
        (document,) = server_reads.documents(
            client, known_kind, namespace=place.namespace, name=name, as_of=as_of
        )
        binding = server_reads.binding_of(client, document, as_of) if templates else None
        events = explain.read_timeline(client, server_reads.key_of(known_kind, place.namespace, name), as_of)
    shown = three_way.without_memory(document)
    if server.json:
        output.json({"object": shown, "binding": binding, "events": events})
        return
    output.print_line(yaml_output.dump(shown).rstrip())
    if templates:
        output.print_line("")
        for line in _placement(binding):
            output.print_line(output.clean(line))
        for line in _overrides(events):
            output.print_line(output.clean(line))
    output.print_line("")
    output.print_line("Events:" if events else "Events: none")
    if events:
        explain.show_entries(events[-_EVENTS_MAX:], is_named=False)


def _placement(binding: Json | None) -> list[str]:
    """Lines about the placement of a template."""
    if binding is None:
        return ["Scheduled: no; no policy selects it"]
    status = object_at(binding, "status")
    conditions = [
        f"{condition.get('type')}: {condition.get('status')} ({condition.get('reason')}) {condition.get('message')}"
        for condition in objects_at(status, "conditions")
    ]
    faults = [
        f"Not applied in {report.get('clusterName')}: {report['appliedMessage']}"
        for report in objects_at(status, "aggregatedStatus")
        if report.get("appliedMessage")
    ]
    needs = [
        f"Required by: {need.get('namespace')}/{need.get('name')}"
        for need in objects_at(binding, "spec", "requiredBy")
    ]
    return [f"Clusters: {table_rows.spread(binding) or 'none'}", *needs, *conditions, *faults]


def _overrides(events: list[Json]) -> list[str]:
    """Lines about the override policies in each cluster's newest work."""
    policies: dict[str, str] = {}
    for event in events:
        data = object_at(event, "data")
        cluster = str(data.get("cluster", ""))
        match summaries.event_name(str(event.get("type", ""))):
            case "work-applied":
                named = (summaries.override(item) for item in objects_at(data, "overrides"))
                policies[cluster] = ", ".join(named)
            case "work-removed":
                policies.pop(cluster, None)
            case _:
                pass
    return [f"Overridden in {name} by {policies[name]}" for name in sorted(policies) if policies[name]]
