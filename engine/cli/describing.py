"""``describe``: one object, its placement, and its latest events."""

from typing import Final

from engine.cli import asking, changing, listing, options, reading, showing, three_way, yamls
from engine.cli.client import Json
from engine.gateway import words
from events import forms_kinds as kinds

_EVENTS_MAX: Final = 20


def describe(
    kind: str,
    name: str = "",
    /,
    *,
    as_of: options.AsOf = "",
    place: options.Place = options.PLACE,
    server: options.Server = options.SERVER,
) -> None:
    """Show one object with its decisions and events."""
    kind, name = changing.split(kind, name)
    found = reading.kind_of(kind)
    templates = found.route == "template" and found not in kinds.DERIVED
    with server.client() as client:
        (document,) = reading.documents(client, found, namespace=place.namespace, name=name, as_of=as_of)
        binding = reading.binding_of(client, document, as_of) if templates else None
        events = asking.read_timeline(client, reading.key_of(found, place.namespace, name), as_of)
    shown = three_way.without_memory(document)
    if server.json:
        showing.json({"object": shown, "binding": binding, "events": events})
        return
    showing.say(yamls.dump(shown).rstrip())
    if templates:
        showing.say("")
        for line in _placement(binding):
            showing.say(showing.clean(line))
        for line in _overrides(events):
            showing.say(showing.clean(line))
    showing.say("")
    showing.say("Events:" if events else "Events: none")
    if events:
        asking.show_entries(events[-_EVENTS_MAX:])


def _placement(binding: Json | None) -> list[str]:
    """Lines about the placement of a template."""
    if binding is None:
        return ["Scheduled: no; no policy selects it"]
    status = listing.part(binding, "status")
    found = [
        f"{each.get('type')}: {each.get('status')} ({each.get('reason')}) {each.get('message')}"
        for each in listing.items(status.get("conditions"))
    ]
    faults = [
        f"Not applied in {each.get('clusterName')}: {each['appliedMessage']}"
        for each in listing.items(status.get("aggregatedStatus"))
        if each.get("appliedMessage")
    ]
    needs = [
        f"Required by: {each.get('namespace')}/{each.get('name')}"
        for each in listing.items(listing.part(binding, "spec").get("requiredBy"))
    ]
    return [f"Clusters: {listing.spread(binding) or 'none'}", *needs, *found, *faults]


def _overrides(events: list[Json]) -> list[str]:
    """Lines about the override policies in each cluster's newest work."""
    found: dict[str, str] = {}
    for each in events:
        data = listing.part(each, "data")
        cluster = str(data.get("cluster", ""))
        match words.event_name(str(each.get("type", ""))):
            case "work-applied":
                named = (words.override(item) for item in listing.items(data.get("overrides")))
                found[cluster] = ", ".join(named)
            case "work-removed":
                found.pop(cluster, None)
            case _:
                pass
    return [f"Overridden in {name} by {found[name]}" for name in sorted(found) if found[name]]
