"""``get``: list objects in tables, or print them whole; ``-w`` continues with changes."""

import time
from collections.abc import Sequence
from typing import Annotated, Final, Literal, NamedTuple

from cyclopts import Parameter

from engine.cli import (
    failures,
    next_commands,
    options,
    server_reads,
    set_properties,
    table_rows,
    three_way,
)
from engine.cli import output as cli_output
from engine.cli.client import Client
from engine.cli.server_reads import Selection
from engine.cli.table_rows import Listing
from engine.http.query.response_types import Moment
from engine.objects import bindings
from events import times
from events.json_values import Json
from events.kube_objects import KubeObject
from events.validation import known_kinds as kinds

_WORKS: Final = frozenset({"work", "works", "wk"})
_WHOLE: Final = frozenset({"yaml", "json", "name"})
_NAMING: Final = frozenset({"NAMESPACE", "NAME", "CLUSTER"})
"""Columns whose cells together identify a row."""

_AGES: Final = frozenset({"AGE", "LAST SEEN", "FIRST SEEN"})
"""Columns that change all the time."""

_HEADING: Final = -1
"""Index with which ``output.rows`` prints the heading line instead of a row."""

_REFRESH_SECONDS: Final = 0.25
"""Delay before a refresh in watch mode; changes within it are shown together."""

All = Annotated[bool, Parameter(name=["--all-namespaces", "-A"], negative=(), help="All namespaces.")]
Output = Annotated[
    Literal["table", "wide", "yaml", "json", "name"],
    Parameter(name=["--output", "-o"], help="Output format."),
]
Selector = Annotated[
    str, Parameter(name=["--selector", "-l"], help="Conditions on labels: app=nginx,tier in (a,b),!old.")
]
NoHeaders = Annotated[bool, Parameter(negative=(), help="Print tables without their headings.")]
Watch = Annotated[
    bool,
    Parameter(
        name=["--watch", "-w"], negative=(), help="After the list, print each row that changes, until Ctrl-C."
    ),
]


class _Shown(NamedTuple):
    """The objects of a kind in the form to print: ``whole`` objects or a ``table``. The other form may be empty."""

    whole: list[Json]
    table: Listing


class _Style(NamedTuple):
    """Whether tables have the wide columns, and whether they have a heading."""

    is_wide: bool
    has_headings: bool


def get(  # noqa: PLR0913  # each is an option that kubectl has too
    kind: options.Kind,
    /,
    *names: options.Names,
    output: Output = "table",
    no_headers: NoHeaders = False,
    selector: Selector = "",
    all_namespaces: All = False,
    watch: Watch = False,
    as_of: options.AsOf = "",
    scope: options.NamespaceOption = options.NAMESPACE,
    server: options.Server = options.SERVER,
) -> None:
    requested = _requested(kind, names)
    form = "json" if server.json else output
    if watch and (as_of or form in _WHOLE):
        raise failures.usage(
            "-w prints the present state and its changes as a table", "remove --as-of, --json and -o"
        )
    selection = Selection("" if all_namespaces else scope.namespace, labels=selector, as_of=as_of)
    is_whole = form in _WHOLE
    style = _Style(is_wide=form == "wide", has_headings=not no_headers)
    with server.client() as client:
        server_reads.warn_of_observer(client)
        if watch:
            _watch(client, requested, selection, style)
            return
        shown = [_matching(client, *item, selection, is_whole=is_whole) for item in requested.items()]
        if is_whole:
            whole = [document for result in shown for document in result.whole]
            is_named = all(requested.values())
            table_rows.show_whole(whole, form=form, single=is_named and len(whole) == 1)
        else:
            _show([result.table for result in shown], style)


def _requested(kind: str, names: Sequence[str]) -> dict[str, list[str]]:
    """The requested kinds, each with the names of its objects; no names mean all objects.

    Raises Failure if no kind is named.
    """
    if "/" in kind:
        named: dict[str, list[str]] = {}
        for kind_name, name in set_properties.split_all(kind, *names):
            named.setdefault(kind_name, []).append(name)
        return named
    kind_names = [kind_name for kind_name in kind.split(",") if kind_name]
    if not kind_names:
        raise failures.usage("missing kind", "for example: reballast get deploy")
    return {kind_name: list(names) for kind_name in kind_names}


def _show(tables: list[Listing], style: _Style) -> None:
    """Print the tables that have rows; if none has rows, print the first table."""
    filled = [table for table in tables if table.rows] or tables[:1]
    for count, table in enumerate(filled):
        if count:
            cli_output.print_line("")
        table_rows.show_table(table, wide=style.is_wide, has_heading=style.has_headings)


def _watch(client: Client, requested: dict[str, list[str]], selection: Selection, style: _Style) -> None:
    """Print the tables, then each row that is removed or that changes in a shown column other than AGE.

    A heading is printed whenever the kind of the rows changes.
    """

    def read() -> list[Listing]:
        listings = [_matching(client, *item, selection, is_awaited=True).table for item in requested.items()]
        return [table if style.is_wide else table._replace(wide=()) for table in listings]

    number = server_reads.last_number(client)
    tables = read()
    _show(tables, style)
    last_kind = 0 if len(tables) == 1 and tables[0].rows else None
    for event in server_reads.live_entries(client, number):
        if event.number <= number:
            continue  # the tables included this change already
        time.sleep(_REFRESH_SECONDS)
        number = server_reads.last_number(client)
        before, tables = tables, read()
        for index, (old, new) in enumerate(zip(before, tables, strict=True)):
            columns = (*new.columns, *new.wide)
            rows, chosen = _changes(old, new)
            if chosen and index != last_kind:
                chosen, last_kind = [*([_HEADING] * style.has_headings), *chosen], index
            cli_output.rows(columns, rows, chosen)
    raise failures.Failure(
        "the server stopped", next_commands.hint("start it again", "up"), code=failures.NO_SERVER
    )


def _changes(old: Listing, new: Listing) -> tuple[list[Sequence[cli_output.Cell]], list[int]]:
    """Return the rows of ``new`` followed by the removed rows, and the indexes of added, changed and removed rows."""
    columns = (*new.columns, *new.wide)
    naming = [index for index, column in enumerate(columns) if column in _NAMING]
    ageless = [index for index, column in enumerate(columns) if column not in _AGES]

    def cells(row: Sequence[cli_output.Cell], indexes: list[int]) -> tuple[str, ...]:
        return tuple(str(row[index]) for index in indexes if index < len(row))

    known = {cells(row, ageless) for row in old.rows}
    names = {cells(row, naming) for row in new.rows}
    removed = [row[: len(columns)] for row in old.rows if cells(row, naming) not in names]
    rows: list[Sequence[cli_output.Cell]] = [row[: len(columns)] for row in new.rows]
    changed = [at for at, row in enumerate(rows) if cells(row, ageless) not in known]
    chosen = [*changed, *range(len(rows), len(rows) + len(removed))]
    return [*rows, *((*row[:-1], f"{row[-1]}  (removed)") for row in removed)], chosen


def _matching(
    client: Client,
    kind_name: str,
    names: Sequence[str],
    selection: Selection,
    *,
    is_awaited: bool = False,
    is_whole: bool = False,
) -> _Shown:
    """The objects with these names; without names, all.

    Raises Failure if a named object does not exist, except with ``is_awaited``.
    """
    now_ms = _reference_time_ms(client, selection.as_of)
    if server_reads.is_pod(kind_name):
        from engine.cli import pod_tables  # noqa: PLC0415  # loads the simulation; most kinds do not need it

        pods = pod_tables.pods(client, names, selection)
        return _Shown(
            [pod_tables.pod(pod).document for pod in pods],
            pod_tables.pod_table(pods, selection.namespace, now_ms),
        )
    if kind_name.lower() in _WORKS:
        from engine.cli import pod_tables  # noqa: PLC0415  # as above

        if is_whole and selection.as_of:
            raise failures.Failure(
                "--as-of: the log has no Work objects",
                next_commands.hint("print the table", "get works", "--as-of"),
            )
        works = pod_tables.works(client, names, namespace=selection.namespace, as_of=selection.as_of)
        whole = pod_tables.work_objects(client, works) if is_whole else []
        return _Shown([three_way.as_read(value).document for value in whole], pod_tables.work_table(works))
    kind = server_reads.kind_of(kind_name, client)
    if selection.as_of and kind.kind == "Event":
        raise failures.Failure(
            "--as-of: the log has no Events",
            next_commands.hint("see the events about an object", "timeline KIND NAME"),
        )
    objects = [
        value
        for name in names or ("",)
        for value in server_reads.documents(
            client, kind, selection._replace(name=name), is_awaited=is_awaited
        )
    ]
    if is_whole:
        return _Shown([three_way.as_read(value).document for value in objects], Listing((), (), []))
    table, shown = _table(client, kind, objects, selection, now_ms, is_named=bool(names))
    if kind.namespaced:
        namespace = selection.namespace
        table = table._replace(namespace=namespace) if namespace else table_rows.with_namespaces(table, shown)
    return _Shown([], table)


def _reference_time_ms(client: Client, as_of: str) -> int:
    """The time at which ages are computed: now, or the time of ``--as-of``."""
    if not as_of:
        return server_reads.now_ms()
    try:
        return times.from_text(as_of)
    except (ValueError, OverflowError):
        shown = client.get("moment", Moment, asOf=as_of).time
    try:
        return times.from_text(shown)
    except ValueError:
        # The record has no valid time: number 0 is before the first record, and producers may append records without
        # one.
        return server_reads.now_ms()


def _table(
    client: Client,
    kind: kinds.Kind,
    objects: list[KubeObject],
    selection: Selection,
    now_ms: int,
    *,
    is_named: bool,
) -> tuple[Listing, list[KubeObject]]:
    """The table of the objects, and the object of each row."""
    namespace, as_of = selection.namespace, selection.as_of
    if kind.route != "template" or kind in kinds.DERIVED or kind.kind in server_reads.LISTED_BY_KUBE_API:
        return table_rows.listing(kind, objects, now_ms), objects
    if is_named or len(objects) == 1:
        documents = [server_reads.binding_of(client, value, as_of) for value in objects]
        bound_to = [None if document is None else bindings.of(document) for document in documents]
        pairs = list(zip(objects, bound_to, strict=True))
    else:
        bound = server_reads.bindings_of(client, kind.kind, namespace=namespace, as_of=as_of)
        pairs = [(value, bound.get(value.key)) for value in objects]
    since: dict[str, dict[str, int]] = {} if as_of else server_reads.since_ms(client, namespace)
    ran = [
        (
            value,
            table_rows.runs(binding, since.get(binding.key, {})) if binding else [],
            binding,
        )
        for value, binding in pairs
    ]
    shown = [value for value, runs, _binding in ran for _run in runs or [None]]
    return table_rows.template_listing(kind.kind, ran, now_ms), shown
