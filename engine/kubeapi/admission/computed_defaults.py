"""Defaults that depend on other fields: of definitions, Services, limits of a LimitRange, and requests for devices."""

from typing import Final

from events.json_values import Json, as_text, list_at, object_at

_COUNTED: Final = "ExactCount"
_FAMILIES: Final = ("IPv4", "IPv6")


def definition(spec: Json) -> Json:
    names = object_at(spec, "names")
    if kind := as_text(names.get("kind")):
        names = {"singular": kind.lower(), "listKind": f"{kind}List", **names}
    return {"conversion": {"strategy": "None"}, **spec, "names": names}


def ip_families(spec: Json) -> Json:
    """Return the fields of a Service's IP families as in a cluster that has IPv4 only.

    A headless Service without selector has both families, because its endpoints may be outside of the cluster.
    """
    is_open = spec.get("clusterIP") == "None" and not spec.get("selector")
    families = list_at(spec, "ipFamilies") or ["IPv6" if ":" in str(spec.get("clusterIP")) else "IPv4"]
    policy = spec.get("ipFamilyPolicy") or (
        "RequireDualStack" if is_open or len(families) > 1 else "SingleStack"
    )
    if is_open and policy != "SingleStack":
        families = [*families, *(family for family in _FAMILIES if family not in families)]
    return {"ipFamilies": families, "ipFamilyPolicy": policy}


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
    """Return the device request of a ResourceClaim with defaults: one device, unless it requests all."""
    result: Json = {"allocationMode": _COUNTED, **fields}
    return {"count": 1, **result} if result["allocationMode"] == _COUNTED else result
