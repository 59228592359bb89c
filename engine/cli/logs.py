"""``log tail`` and ``replay``: print events, and fold the views from scratch."""

from typing import Annotated, Final

import msgspec
from cyclopts import App, Parameter, validators

from engine.cli import explain, options, output, server_reads
from engine.cli.client import Client
from engine.cli.help_texts import questions
from engine.http.query.response_types import Counts, Entry
from events import topics

_WIDER: Final = 8

app = App(name="log", help=questions.LOG, help_format="plaintext")

for _name, _target, _text in (
    ("verify", "log_verify:verify", questions.LOG_VERIFY),
    ("checkpoint", "log_checkpoint:checkpoint", questions.LOG_CHECKPOINT),
    ("new-key", "log_checkpoint:new_key", questions.LOG_NEW_KEY),
    ("export", "log_export:export", questions.LOG_EXPORT),
    ("import", "log_export:load", questions.LOG_IMPORT),
):
    app.command(f"engine.cli.{_target}", name=_name, help=_text)

Follow = Annotated[bool, Parameter(help="Continue with new events until Ctrl-C.")]
Topic = Annotated[str, Parameter(help=f"Only events of this topic: {', '.join(topics.TOPICS)}.")]
Lines = Annotated[
    int,
    Parameter(
        name=["--lines", "-n"],
        help="Number of newest events to show first.",
        validator=validators.Number(gte=0),
    ),
]


@app.command(help=questions.LOG_TAIL)
def tail(
    *,
    lines: Lines = 20,
    topic: Topic = "",
    follow: Follow = True,
    server: options.Server = options.SERVER,
) -> None:
    with server.client() as client:
        _tail(client, lines, topic, follow=follow, as_json=server.json)


def _tail(client: Client, lines: int, topic: str, *, follow: bool, as_json: bool) -> None:
    last = server_reads.last_number(client)
    entries = _newest(client, last, topic, lines) if lines else []
    if as_json:
        for entry in entries:
            _print_json(entry)
    elif entries:
        explain.show_entries(entries)
    if follow:
        _follow(client, max([last, *(entry.number for entry in entries)]), topic, entries, as_json=as_json)


def replay(*, as_of: options.AsOf = "", server: options.Server = options.SERVER) -> None:
    with server.client() as client:
        until = as_of or str(server_reads.last_number(client))
        counts = client.get("counts", Counts, asOf=until).counts
    if server.json:
        output.json({"asOf": until, "counts": counts})
        return
    output.print_line(output.clean(f"Counts of the log up to {until}:"))
    output.table(
        ("EVENTS", "COUNT"),
        sorted((name.replace("io.reballast.", ""), count) for name, count in counts.items()),
    )


def _follow(client: Client, after: int, topic: str, shown: list[Entry], *, as_json: bool) -> None:
    """Print new events until the server stops; ``shown`` are those that are printed already."""
    for event in server_reads.live_entries(client, after, topic):
        if as_json:
            _print_json(event)
        else:
            explain.show_next(event, shown)
            shown = shown or [event]


def _newest(client: Client, last: int, topic: str, lines: int) -> list[Entry]:
    """The newest records of a topic, searched in growing windows from the end."""
    window = lines
    while True:
        start = max(last - window, 0)
        records = list(server_reads.entries(client, "log", start=start, topic=topic))
        if len(records) >= lines or not start:
            return records[-lines:]
        window *= _WIDER


def _print_json(entry: Entry) -> None:
    """One record per line, for programs."""
    output.print_line(msgspec.json.encode(entry).decode())
