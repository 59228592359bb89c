"""Defaults that depend on other fields: of definitions, limits of a LimitRange, and requests for devices."""

from typing import Final

from events.json_values import Json, as_text, object_at

_COUNTED: Final = "ExactCount"


def definition(spec: Json) -> Json:
    names = object_at(spec, "names")
    if kind := as_text(names.get("kind")):
        names = {"singular": kind.lower(), "listKind": f"{kind}List", **names}
    return {"conversion": {"strategy": "None"}, **spec, "names": names}


def limit(limit: Json) -> Json:
    """Return an item of a LimitRange for containers with its defaults filled in; other items are returned unchanged.

    Limits default to ``max``; requests default to the default limits, then to ``min``.
    """
    if limit.get("type") != "Container":
        return limit
    most, least = object_at(limit, "max"), object_at(limit, "min")
    default = {**most, **object_at(limit, "default")}
    default_requests = {**least, **default, **object_at(limit, "defaultRequest")}
    amounts = {"default": default, "defaultRequest": default_requests}
    return {**limit, **{name: amount for name, amount in amounts.items() if amount}}


def requested_devices(fields: Json) -> Json:
    """Return a description of the devices that a ResourceClaim requests: one device unless it requests all."""
    result: Json = {"allocationMode": _COUNTED, **fields}
    return {"count": 1, **result} if result["allocationMode"] == _COUNTED else result
