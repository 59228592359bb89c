"""Short text for log records and explanations, for tables of the CLI and the pages. Plain JSON in, text out."""

from collections.abc import Iterator, Mapping
from typing import Final, cast

from engine.http import observed_texts
from events.json_values import Json, as_object, object_at, objects_at, texts

_LEFT_OUT: Final = frozenset({"key", "manifest", "placement", "ends"})

NOT_PREEMPTED: Final = {
    "NotEnough": "preempting all lower-priority bindings would not free enough capacity",
    "TooMany": "too many bindings would have to be preempted",
    "RoomCame": "capacity became free meanwhile",
}
"""Texts for the reasons why no binding is preempted."""


def event_name(event_type: str) -> str:
    """``schedule-decided`` for ``io.reballast.schedule-decided.v1``."""
    return event_type.removeprefix("io.reballast.").rpartition(".v")[0] or event_type


def summary(entry: Mapping[str, object], *, is_named: bool = True) -> str:
    """A record in one line: the most informative fields of its data, or its fault, and the plan that caused it.

    ``is_named``: an observation begins with the name of its object.
    """
    planned = f" (planned by {entry['plan']})" if entry.get("plan") else ""
    return _summary(entry, is_named=is_named) + planned


def _summary(entry: Mapping[str, object], *, is_named: bool) -> str:
    if entry.get("fault"):
        return str(entry["fault"])
    data = as_object(entry.get("data"))
    if data is None:
        return ""
    observed = observed_texts.text(event_name(str(entry.get("type", ""))), data, is_named=is_named)
    if observed is not None:
        return observed
    return " ".join(
        f"{name}={short(value)}"
        for name, value in data.items()
        if name not in _LEFT_OUT and not name.lower().endswith("digest")
    )


def override(ref: Mapping[str, object]) -> str:
    """The override policy that a work refers to, as ``Kind namespace/name``."""
    namespace = f"{ref['namespace']}/" if ref.get("namespace") else ""
    return f"{ref.get('kind')} {namespace}{ref.get('name')}"


def failures(cluster: Mapping[str, object]) -> list[str]:
    """Reasons why an explanation excluded a cluster; empty if it was a candidate."""
    failed = cluster.get("failed")
    listed = [str(reason) for reason in cast("list[object]", failed)] if isinstance(failed, list) else []
    return [*(["the cluster is leaving"] if cluster.get("terminating") else []), *listed]


def short(value: object) -> str:
    """A value in one line: objects by name (``name:replicas``), lists in brackets."""
    if isinstance(value, dict):
        fields = cast("dict[str, object]", value)
        if "name" in fields:
            replicas = f":{fields['replicas']}" if "replicas" in fields else ""
            return f"{fields['name']}{replicas}"
        return "{" + ",".join(f"{name}:{short(item)}" for name, item in fields.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(short(item) for item in cast("list[object]", value)) + "]"
    return str(value)


def preemption_lines(explained: Json) -> Iterator[tuple[str, str]]:
    """Lines about priority and preemption in an explanation, as (heading, text)."""
    priority, preemption = object_at(explained, "priority"), object_at(explained, "preemption")
    if explained.get("refused"):
        yield "Not applied", f"{explained['refused']}; the policy is applied once that is put right"
    is_never = priority.get("preemptionPolicy") == "Never"
    if priority:
        by = f"class {priority['className']}" if priority.get("className") else "no class"
        yield "Priority", f"{priority.get('value')} ({priority.get('fault') or by})"
    if preemption:
        where = ", ".join(texts(preemption.get("clusters")))
        count, at = preemption.get("missing"), preemption.get("askedAt")
        yield (
            "Capacity",
            f"missing for {count} replicas in {where} at {at}, attempt {preemption.get('attempt')}",
        )
        yield from (("Preempts", line) for line in _preempts(preemption))
    elif is_never and explained.get("condition") == "Unschedulable":
        yield "Preempts", "nothing: preemptionPolicy is Never"
    for cluster, entry in object_at(explained, "preempted").items():
        data = cast("Json", entry)
        until = f", excluded until {data['until']}" if data.get("until") else ""
        text = (
            f"in {cluster} by {data.get('by')} at {data.get('at')}: {data.get('replicas')} replicas evicted"
        )
        yield "Preempted", f"{text}{until}"


def _preempts(preemption: Json) -> Iterator[str]:
    for victim in objects_at(preemption, "victims"):
        size = f"{victim.get('replicas')} replicas, priority {victim.get('priority')}"
        yield f"{victim.get('key')} in {victim.get('cluster')} ({size})"
    if preemption.get("reason"):
        yield f"nothing: {NOT_PREEMPTED[str(preemption['reason'])]}"
    elif not preemption.get("isAnswered"):
        yield "undecided: some shards have not answered yet"
