"""Reading from the server: queries by kind, pages joined together, and the live feed of the log."""

import contextlib
import time
from collections.abc import Generator, Iterator, Mapping
from typing import Final, Generic, NamedTuple, TypeVar

import msgspec
from msgspec import Struct

from engine.agent import discovery
from engine.cli import failures, next_commands, output
from engine.cli.client import Client, Parameter
from engine.http.query.response_types import Entries, Entry, Lag
from engine.objects import bindings
from engine.objects.bindings import Binding
from engine.simulation.listed_statuses import WorkloadStatus
from events import keys, vocabulary
from events.json_values import Json, as_text, objects_at
from events.kube_objects import KubeObject
from events.validation import known_kinds as kinds

_PAGE_ITEMS: Final = 500
LISTED_BY_KUBE_API: Final = frozenset({"Namespace", "Event", "Work"})
"""Kinds of which the Kubernetes API derives some objects itself, so only it lists all of them."""


_Item = TypeVar("_Item")


class Page(Struct, Generic[_Item], rename={"continue_": "continue"}):
    """A page of a query's items; ``continue_`` is the token for the next page, empty on the last one."""

    items: list[_Item]
    continue_: str = ""


def is_pod(kind_name: str) -> bool:
    """Whether this is a name of the kind Pod: pods are read from the members."""
    return kind_name.lower() in {"pod", "pods", "po"}


_TERMS: Final = {
    **dict.fromkeys(["binding", "bindings"], "resourcebindings"),
    **dict.fromkeys(["policy", "policies"], "propagationpolicies"),
    **dict.fromkeys(["rebalancer", "rebalancers"], "workloadrebalancers"),
}
"""Shorter names that documentation and pages use for kinds; a custom kind with such a name takes precedence."""


def kind_of(name: str, client: Client | None = None) -> kinds.Kind:
    """Return the kind with this name; custom kinds need ``client``. For an unknown name, return a namespaced kind."""
    served = kinds.find(name)
    if served is None and client is not None:
        # The server of an observer has no Kubernetes API for discovery; queries get the name unchanged.
        with contextlib.suppress(failures.Failure):
            served = discovered(client, name)
    served = served or kinds.find(_TERMS.get(name.lower(), ""))
    return served or kinds.Kind(api_version="", kind=name, plural=name.lower())


def discovered(client: Client, name: str) -> kinds.Kind | None:
    """The custom kind of this name, plural, short name or ``plural.group``; None if the server serves none."""
    bare_name, _dot, group = name.lower().partition(".")
    reply = client.kubernetes("GET", "apis", headers={"accept": discovery.ACCEPTED})
    for served in discovery.of_aggregated(reply.body):
        names = {served.kind.lower(), served.plural, served.singular, *served.short}
        if bare_name in names and group in {"", served.group}:
            return served
    return None


def objects(client: Client, path: str, **query: str) -> Iterator[KubeObject]:
    """All objects of a query, page by page."""
    return map(KubeObject, items(client, path, Page[Json], query))


def items(client: Client, path: str, kind: type[Page[_Item]], query: Mapping[str, str]) -> Iterator[_Item]:
    """All items of a query, page by page; ``kind`` is the type of a page."""
    mark = ""
    while True:
        page = client.get(path, kind, limit=_PAGE_ITEMS, **query, **{"continue": mark})
        yield from page.items
        mark = page.continue_
        if not mark:
            return


def entries(client: Client, path: str, *, start: int = 0, **query: Parameter) -> Iterator[Entry]:
    """All records of a query after the number ``start``, page by page."""
    after = start
    while True:
        page = client.get(path, Entries, limit=_PAGE_ITEMS, after=after, **query)
        yield from page.items
        after = page.after
        if not after:
            return


def since_ms(client: Client, namespace: str) -> dict[str, dict[str, int]]:
    """Creation times (ms since 1970) of workloads, by binding key and simulated member; empty without members."""
    times: dict[str, dict[str, int]] = {}
    running = client.find("members/workloads", Page[WorkloadStatus], namespace=namespace)
    for workload in running.items if running else ():
        times.setdefault(workload.key, {})[workload.cluster] = workload.created_ms
    return times


class Selection(NamedTuple):
    """Selects objects of a kind by namespace, name and labels; empty fields select all. ``as_of`` empty means now."""

    namespace: str
    name: str = ""
    labels: str = ""
    as_of: str = ""


def documents(
    client: Client, kind: kinds.Kind, selection: Selection, *, is_awaited: bool = False
) -> list[KubeObject]:
    """The selected objects of a kind.

    Raises Failure if the kind is unknown. Raises it also if a named object does not exist, except with ``is_awaited``.
    """
    if not kind.namespaced:
        selection = selection._replace(namespace="")
    matching = list(_all(client, kind, selection))
    if not matching and not kind.api_version and not selection.labels:
        raise unknown_kind(kind.kind)
    if selection.name and not matching and not is_awaited:
        where = f" in namespace {selection.namespace}" if selection.namespace else ""
        when = f" as of {selection.as_of}" if selection.as_of else ""
        listing = f"get {kind.plural} -A"
        if selection.as_of:
            listing = f"timeline {kind.plural} {selection.name}{next_commands.namespace(selection.namespace)}"
        raise failures.Failure(
            f'{kind.resource} "{selection.name}" not found{where}{when}', next_commands.hint("see", listing)
        )
    return matching


def served_objects(
    client: Client, kind: kinds.Kind, path: str, query: Mapping[str, Parameter]
) -> Iterator[KubeObject]:
    """The objects of a kind that the Kubernetes API lists at a path; raises Failure."""
    reply = client.kubernetes("GET", path, query=query)
    if reply.is_refusal:
        raise failures.Failure(as_text(reply.body.get("message")))
    for item in objects_at(reply.body, "items"):
        yield KubeObject({"apiVersion": kind.api_version, "kind": kind.kind, **item})


def warn_of_observer(client: Client) -> None:
    """If the server observes another control plane, print that its objects are not listed, and what to do."""
    if client.observes:
        output.warn(f"This server observes {client.observes}, whose objects are not listed.")
        output.warn(next_commands.hint("  see what was observed", "timeline KIND NAME -n NAMESPACE"))


def unknown_kind(kind_name: str) -> failures.Failure:
    """The failure for an unknown kind, with a suggestion."""
    known = {name for known_kind in kinds.KINDS for name in (known_kind.plural, *known_kind.short)}
    remedy = failures.suggestion(kind_name.lower(), known, "see: reballast get --help")
    return failures.Failure(f'unknown kind "{kind_name}"', remedy)


def binding_of(client: Client, template: KubeObject, as_of: str = "") -> KubeObject | None:
    """The binding of a template; None if no policy claims it."""
    key = keys.binding_key(template.kind, template.namespace, template.name)
    document = client.find(f"bindings/{key}", Json, asOf=as_of)
    return None if document is None else KubeObject(document)


def bindings_of(
    client: Client, kind: str, *, namespace: str, as_of: str = ""
) -> dict[tuple[str, str], Binding]:
    """The bindings of all templates of a kind, by namespace and name of the template."""
    listed = map(bindings.of, objects(client, "bindings", kind=kind, namespace=namespace, asOf=as_of))
    return {(binding.spec.resource.namespace, binding.spec.resource.name): binding for binding in listed}


def key_of(kind: kinds.Kind, namespace: str, name: str) -> str:
    """The key of an object for the queries ``explain`` and ``timeline``."""
    if not kind.namespaced:
        namespace = ""
    if kind.kind in vocabulary.BINDING_KINDS:
        return keys.full_name(namespace, name)
    if kind.route == "cluster":
        return keys.cluster_key(name)
    return kinds.record_key(kind.route, kind.kind, namespace, name)


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def _all(client: Client, kind: kinds.Kind, selection: Selection) -> Iterator[KubeObject]:
    namespace, name, labels, as_of = selection
    if kind.route == "cluster":
        for value in objects(client, "clusters", labelSelector=labels, asOf=as_of):
            if name in {"", value.name}:
                yield value
    elif kind.kind in vocabulary.BINDING_KINDS:
        for value in objects(client, "bindings", namespace=namespace, labelSelector=labels, asOf=as_of):
            if value.kind == kind.kind and name in {"", value.name}:
                yield value
    elif kind.kind in LISTED_BY_KUBE_API and not as_of:
        yield from _served(client, kind, selection)
    else:
        # Objects of a custom kind are stored in the version in which they were written, so query all
        # versions.
        is_known = kinds.of(kind.api_version, kind.kind) is not None
        version = kind.api_version if is_known else ""
        query = {"kind": kind.kind, "apiVersion": version, "namespace": namespace, "name": name}
        for value in objects(client, "objects", **query, labelSelector=labels, asOf=as_of):
            if not kind.group or value.api_version.startswith(f"{kind.group}/"):
                yield value


def _served(client: Client, kind: kinds.Kind, selection: Selection) -> Iterator[KubeObject]:
    """The selected objects of a kind in the Kubernetes API; raises Failure."""
    name = f"metadata.name={selection.name}" if selection.name else ""
    query = {"labelSelector": selection.labels, "fieldSelector": name}
    return served_objects(client, kind, kind.path(selection.namespace).removeprefix("/"), query)


_EVENT_DATA: Final = "data:"


class _Bookmark(Struct, frozen=True):
    """The last message of a connection. The next connection starts after the number ``after``.

    Records have a ``number``, bookmarks have none.
    """

    number: int | None = None
    after: int | None = None


def last_number(client: Client) -> int:
    """The sequence number of the newest record."""
    return client.get("lag", Lag).last_number


def live_entries(client: Client, after: int, topic: str = "") -> Iterator[Entry]:
    """Yield the records after a number, and each later one once it is appended, until the server stops.

    The server may end a connection with a bookmark; a new connection then continues after the bookmark's number.
    """
    mark: int | None = after
    while mark is not None:
        mark = yield from _followed(client, mark, topic)


def _followed(client: Client, after: int, topic: str) -> Generator[Entry, None, int | None]:
    """Yield the records of a connection. Return the number in its last bookmark, or None if the server stopped."""
    with client.stream("live", after=after, topic=topic) as lines:
        for line in lines:
            if not line.startswith(_EVENT_DATA):
                continue
            text = line.removeprefix(_EVENT_DATA)
            bookmark = msgspec.json.decode(text, type=_Bookmark)
            if bookmark.number is None:
                return bookmark.after or after
            yield msgspec.json.decode(text, type=Entry)
    return None
