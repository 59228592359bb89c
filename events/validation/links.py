"""Validation of links beyond the types of their fields.

Every fold runs it as part of its verdict, because names in a link become keys of works and fields of
bindings, whichever producer wrote the link.
"""

import re
from typing import Final

from events import keys, limits, links, objects, shapes
from events.validation import names

_BOUND: Final = re.compile(r"[a-zA-Z0-9]([-a-zA-Z0-9_.]*[a-zA-Z0-9])?")


def check(data: shapes.Event) -> None:
    """Raise ``objects.Refusal`` for the first fault of a link; other types of events pass."""
    match data:
        case links.DependencyNeeded(dependency=ref, by=by, clusters=clusters):
            _check_need(ref, by)
            _check_clusters(clusters, "clusters")
        case links.DependencyDropped(dependency=ref, by=by):
            _check_need(ref, by)
        case links.CapacityRequested(key=key, clusters=clusters):
            _check_key(key, "key")
            _check_clusters(clusters, "clusters")
        case links.CapacityOffered(key=key, occupants=occupants):
            _check_key(key, "key")
            for each in occupants:
                _check_key(each.key, "occupants.key")
                _check_clusters((each.cluster,), "occupants.cluster")
                for resource, amount in each.requests.items():
                    if not names.is_quantity(amount):
                        raise objects.Refusal(
                            f"occupants.requests.{resource[: limits.SHOWN_CHARS_MAX]}",
                            f"{amount[: limits.SHOWN_CHARS_MAX]!r} is not {names.QUANTITY.means}",
                        )
        case links.PreemptionRequested(key=key, cluster=cluster, by=by):
            _check_key(key, "key")
            _check_key(by, "by")
            _check_clusters((cluster,), "cluster")
        case links.ClusterCleared(cluster=cluster):
            _check_clusters((cluster,), "cluster")
        case _:
            _check_share(data)


def _check_share(data: shapes.Event) -> None:
    match data:
        case links.QuotaRequested(namespace=namespace, key=key):
            _check_key(key, "key")
            if not namespace or keys.split(key)[0] != namespace:
                raise objects.Refusal("key", "names no binding of the namespace")
        case links.QuotaAnswered(key=key):
            _check_key(key, "key")
        case links.GroupAsked(key=key, placed=placed, wanted=wanted):
            _check_key(key, "key")
            _check_clusters(placed, "placed")
            _check_clusters(wanted, "wanted")
        case links.GroupAnswered(key=key, others=others):
            _check_key(key, "key")
            _check_clusters(others, "others")
        case _:
            return


def _check_clusters(clusters: tuple[str, ...], field: str) -> None:
    for name in clusters:
        if not names.is_dns_name(name):
            raise objects.Refusal(field, f"{name[: limits.SHOWN_CHARS_MAX]!r} is no name of a cluster")


def _check_key(key: str, field: str) -> None:
    namespace, name = keys.split(key)
    form = names.NAMESPACE.pattern
    is_sound = form is not None and form.fullmatch(namespace) and _BOUND.fullmatch(name)
    if not is_sound or len(key) > limits.KEY_BYTES_MAX:
        raise objects.Refusal(field, f"{key[: limits.SHOWN_CHARS_MAX]!r} is no key of a binding")


def _check_need(ref: shapes.WorkloadRef, by: str) -> None:
    for field, form, text in (
        ("apiVersion", names.API_VERSION, ref.api_version),
        ("kind", names.KIND, ref.kind),
        ("name", names.OBJECT, ref.name),
        ("namespace", names.NAMESPACE, ref.namespace),
    ):
        if form.pattern and not form.pattern.fullmatch(text):
            shown = repr(text[: limits.SHOWN_CHARS_MAX])
            raise objects.Refusal(f"dependency.{field}", f"{shown} is not {form.means}")
    namespace, name = keys.split(by)
    if not namespace or namespace != ref.namespace:
        raise objects.Refusal("by", "names no binding of the object's own namespace")
    if len(by) > limits.KEY_BYTES_MAX or not _BOUND.fullmatch(name):
        raise objects.Refusal("by", f"{by[: limits.SHOWN_CHARS_MAX]!r} is no key of a binding")
