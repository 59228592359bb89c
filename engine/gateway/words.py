"""Records of the log in a few words, for tables of the command line and of the pages. Plain JSON in, text out."""

from collections.abc import Mapping
from typing import Final, cast

_UNTOLD: Final = frozenset({"key", "manifest", "placement", "ends"})


def event_name(event_type: str) -> str:
    """``schedule-decided`` of ``io.reballast.schedule-decided.v1``."""
    return event_type.removeprefix("io.reballast.").rpartition(".v")[0] or event_type


def summary(entry: Mapping[str, object]) -> str:
    """A record of the log in a few words: the fields of its data that tell most, or what is wrong with it."""
    if entry.get("fault"):
        return str(entry["fault"])
    data = entry.get("data")
    if not isinstance(data, dict):
        return ""
    return " ".join(
        f"{name}={short(value)}"
        for name, value in cast("dict[str, object]", data).items()
        if name not in _UNTOLD and not name.lower().endswith("digest")
    )


def override(ref: Mapping[str, object]) -> str:
    """An override policy that a work names, as people say it."""
    namespace = f"{ref['namespace']}/" if ref.get("namespace") else ""
    return f"{ref.get('kind')} {namespace}{ref.get('name')}"


def short(value: object) -> str:
    """A value in a line: names of objects and lists of clusters as people say them."""
    if isinstance(value, dict):
        fields = cast("dict[str, object]", value)
        if "name" in fields:
            replicas = f":{fields['replicas']}" if "replicas" in fields else ""
            return f"{fields['name']}{replicas}"
        return "{" + ",".join(f"{name}:{short(item)}" for name, item in fields.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(short(item) for item in cast("list[object]", value)) + "]"
    return str(value)
