"""``get``: objects in a table, or whole."""

from typing import Annotated, Final, Literal

from cyclopts import Parameter

from engine.cli import changing, listing, options, reading, running
from engine.cli.client import Client, Json
from engine.cli.listing import Listing
from events import forms_kinds as kinds

_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"

All = Annotated[bool, Parameter(name=["--all-namespaces", "-A"], negative=(), help="All namespaces.")]
Output = Annotated[
    Literal["table", "wide", "yaml", "json", "name"], Parameter(name=["--output", "-o"], help="Form.")
]
Selector = Annotated[
    str, Parameter(name=["--selector", "-l"], help="Conditions on labels: app=nginx,tier in (a,b),!old.")
]


def get(  # noqa: PLR0913  # each is an option that kubectl has too
    kind: str,
    name: str = "",
    /,
    *,
    output: Output = "table",
    selector: Selector = "",
    all_namespaces: All = False,
    as_of: options.AsOf = "",
    place: options.Place = options.PLACE,
    server: options.Server = options.SERVER,
) -> None:
    """List objects, with a row for each cluster they run in."""
    if "/" in kind:
        kind, name = changing.split(kind, name)
    form = "json" if server.json else output
    namespace = "" if all_namespaces else place.namespace
    with server.client() as client:
        if kind.lower() in running.PODS:
            running.show_pods(client, name, namespace=namespace, labels=selector, form=form)
        elif kind.lower() in running.WORKS:
            running.show_works(client, form=form, as_of=as_of)
        else:
            found = reading.kind_of(kind)
            documents = reading.documents(
                client, found, namespace=namespace, name=name, labels=selector, as_of=as_of
            )
            if form in {"yaml", "json", "name"}:
                whole = [_without_memory(each) for each in documents]
                running.show_whole(whole, form=form, single=bool(name))
                return
            table, shown = _table(client, found, documents, namespace=namespace, as_of=as_of)
            if all_namespaces and found.namespaced:
                table = listing.with_namespaces(table, shown)
            running.show_table(table, wide=form == "wide")


def _table(
    client: Client, kind: kinds.Kind, documents: list[Json], *, namespace: str, as_of: str
) -> tuple[Listing, list[Json]]:
    """The table of some objects, and the object of each of its rows."""
    now_ms = reading.now_ms()
    if kind.route != "template" or kind in kinds.DERIVED:
        return listing.listing(kind.kind, documents, now_ms), documents
    if len(documents) == 1:
        found = [(documents[0], reading.binding_of(client, documents[0], as_of))]
    else:
        bound = reading.bindings_of(client, kind.kind, namespace=namespace, as_of=as_of)
        found = [(each, bound.get((listing.placed(each), listing.named(each)))) for each in documents]
    since: dict[str, dict[str, int]] = {} if as_of else reading.since_ms(client, namespace)
    ran = [
        (each, listing.runs(binding, since.get(listing.binding_key(binding), {})) if binding else [])
        for each, binding in found
    ]
    shown = [each for each, runs in ran for _run in runs or [None]]
    return listing.template_listing(kind.kind, ran, now_ms), shown


def _without_memory(document: Json) -> Json:
    """The object without what ``apply`` remembers in it, which is for programs."""
    metadata = listing.part(document, "metadata")
    annotations = {
        name: value for name, value in listing.part(metadata, "annotations").items() if name != _LAST_APPLIED
    }
    kept = {name: value for name, value in metadata.items() if name != "annotations"}
    return {**document, "metadata": {**kept, "annotations": annotations} if annotations else kept}
