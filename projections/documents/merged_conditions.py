"""Conditions of an object in several clusters, merged as by Karmada's rules for kinds of Flux and Kyverno."""

from collections.abc import Iterable

from events.json_values import Json, as_text, objects_at

_IDENTITY = ("type", "status", "reason")


def merged(statuses: Iterable[tuple[str, Json]]) -> list[Json]:
    """Return the conditions of the statuses, given by cluster; those of equal type, status and reason are one.

    Its message lists the messages of the clusters; the other fields are those of the first cluster.
    """
    conditions: dict[tuple[str, ...], Json] = {}
    messages: dict[tuple[str, ...], list[str]] = {}
    for cluster, status in statuses:
        for condition in filter(None, objects_at(status, "conditions")):
            identity = tuple(as_text(condition.get(name)) for name in _IDENTITY)
            conditions.setdefault(identity, condition)
            messages.setdefault(identity, []).append(f"{cluster}={as_text(condition.get('message'))}")
    return [
        {**condition, "message": ", ".join(messages[identity])} for identity, condition in conditions.items()
    ]
