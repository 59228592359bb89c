"""``explain`` and ``timeline``: the reasons for a placement, and the history of an object."""

from typing import Final

from engine.cli import (
    explanation_texts,
    failures,
    next_commands,
    options,
    output,
    server_reads,
    set_properties,
)
from engine.cli.client import Client
from engine.http import summaries
from engine.http.query.response_types import Entry
from engine.reconcilers.explanation_types import Explained
from events.validation import known_kinds as kinds

_TIME_CHARS: Final = 19
"""Characters of a timestamp shown in a table: up to the seconds."""


_WIDE_CHARS: Final = 140
"""Terminal width from which the columns for position and cause are shown."""


def explain(
    kind: options.Kind,
    name: options.Name = "",
    /,
    *,
    as_of: options.AsOf = "",
    scope: options.NamespaceOption = options.NAMESPACE,
    server: options.Server = options.SERVER,
) -> None:
    kind, name = set_properties.split(kind, name)
    with server.client() as client:
        known_kind = server_reads.kind_of(kind, client)
        key = server_reads.key_of(known_kind, scope.namespace, name)
        explanation = client.find(f"explain/{key}", Explained, asOf=as_of)
        if explanation is None and client.observes:
            from engine.cli.karmada import shadow  # noqa: PLC0415  # loads what reads logs; only observers need it

            shadow.explain(kind, name, scope=scope, server=server)
            return
        if explanation is None:
            server_reads.documents(
                client, known_kind, server_reads.Selection(namespace=scope.namespace, name=name, as_of=as_of)
            )
            raise _unexplained(known_kind, scope.namespace, name)
    if server.json:
        output.json(explanation)
        return
    for line in explanation_texts.story(explanation):
        output.print_line(line)
    for group in explanation.explanation.groups if explanation.explanation else ():
        explanation_texts.show_group(group, summaries.refusal(explanation, group))


def _unexplained(kind: kinds.Kind, namespace: str, name: str) -> failures.Failure:
    """The failure for an object that exists but has no decided placement."""
    words = f"{kind.plural} {name}{next_commands.namespace(namespace)}"
    if kind.route != "template":
        return failures.Failure(
            f"a {kind.kind} has no placement to explain",
            next_commands.hint("see its events", f"timeline {words}"),
        )
    return failures.Failure(
        f'the placement of {kind.resource} "{name}" is not decided',
        next_commands.hint("check whether a policy selects it", f"describe {words}"),
    )


def timeline(
    kind: options.Kind,
    name: options.Name = "",
    /,
    *,
    as_of: options.AsOf = "",
    scope: options.NamespaceOption = options.NAMESPACE,
    server: options.Server = options.SERVER,
) -> None:
    kind, name = set_properties.split(kind, name)
    with server.client() as client:
        known_kind = server_reads.kind_of(kind, client)
        key = server_reads.key_of(known_kind, scope.namespace, name)
        entries = read_timeline(client, key, as_of)
    if not entries:
        if not known_kind.api_version and not client.observes:
            raise server_reads.unknown_kind(kind)
        raise failures.Failure(f"no event about {key}", "check kind, name and namespace")
    if server.json:
        output.json(entries)
        return
    show_entries(entries, is_named=False)


def read_timeline(client: Client, key: str, as_of: str = "") -> list[Entry]:
    """The records that touched a key, oldest first."""
    return list(server_reads.entries(client, f"timeline/{key}", asOf=as_of))


def show_entries(entries: list[Entry], *, is_named: bool = True) -> None:
    """Print records, one per line; narrow terminals omit their positions and causes.

    With ``is_named``, summaries of observations begin with the name of the observed object.
    """
    output.table(*_table(entries, is_named=is_named), fits=True)


def show_next(entry: Entry, before: list[Entry]) -> None:
    """Print a record, aligned with the records ``before``; if there are none, print the heading first."""
    columns, rows = _table([*before, entry], is_named=True)
    output.rows(columns, rows, [len(before)] if before else [-1, 0], fits=True)


def _table(entries: list[Entry], *, is_named: bool) -> tuple[tuple[str, ...], list[tuple[output.Cell, ...]]]:
    """The columns and rows of records that fit the terminal."""
    rows: list[tuple[output.Cell, ...]] = [
        (
            entry.number,
            entry.time[:_TIME_CHARS],
            summaries.event_name(entry.type),
            entry.position,
            entry.cause or "-",
            summaries.summary(entry, is_named=is_named),
        )
        for entry in entries
    ]
    columns: tuple[str, ...] = ("NUMBER", "TIME", "EVENT", "POSITION", "CAUSE", "SUMMARY")
    if (width := output.width()) is not None and width < _WIDE_CHARS:
        columns, rows = (*columns[:3], columns[5]), [(*row[:3], row[5]) for row in rows]
    return columns, rows
