"""``members``, ``fault``, ``heal``: list the simulated clusters and inject faults."""

from typing import Annotated, Final
from urllib.parse import quote

from cyclopts import Parameter, validators

from engine.cli import failures, next_commands, options, output, table_rows
from engine.cli.server_reads import Page
from engine.http.query.member_routes import FaultRequest
from engine.simulation.listed_statuses import FaultKind, MemberStatus

Amount = Annotated[
    int | None,
    Parameter(
        help="How many times slower replicas start (slow), milliseconds for each request (lagging), or n: each n-th "
        "report is lost (losing), each n-th request is refused (throttled, failing).",
        validator=validators.Number(gte=1),
    ),
]
Member = Annotated[str, Parameter(help="Name of the simulated cluster.")]
_COLUMNS: Final = ("NAME", "JOINED", "FAULTS", "START-UP", "WORKLOADS")


def members(*, server: options.Server = options.SERVER) -> None:
    with server.client() as client:
        answer = client.find("members", Page[MemberStatus])
    if answer is None:
        raise failures.Failure("no members are simulated here", "start the server without --no-members")
    server.show(answer.items, _show)


def fault(
    member: Member,
    kind: Annotated[FaultKind, Parameter(help="Kind of fault.")],
    /,
    *,
    amount: Amount = None,
    server: options.Server = options.SERVER,
) -> None:
    if kind == "down" and amount is not None:
        raise failures.usage("down has no amount", next_commands.command(f"fault {member} down"))
    request = FaultRequest(kind=kind, amount=amount)
    with server.client() as client:
        answer = client.post(f"members/{quote(member, safe='')}/fault", request, Page[MemberStatus])
    server.show(answer.items, _show)


def heal(member: Member, /, *, server: options.Server = options.SERVER) -> None:
    with server.client() as client:
        answer = client.post(f"members/{quote(member, safe='')}/heal", {}, Page[MemberStatus])
    server.show(answer.items, _show)


def faults(member: MemberStatus) -> str:
    """The active faults of a member, separated by commas; ``table_rows.NONE`` if there are none."""
    texts = [
        *(["down"] if member.down else []),
        *([f"slow ({member.slowness} times)"] if member.slowness > 1 else []),
        *([f"losing (1 report in {member.lose_every})"] if member.lose_every else []),
        *([f"lagging ({member.lag_ms} ms)"] if member.lag_ms else []),
        *([f"throttled (1 request in {member.throttle_every})"] if member.throttle_every else []),
        *([f"failing (1 request in {member.fail_every})"] if member.fail_every else []),
    ]
    return ", ".join(texts) or table_rows.NONE


def _show(statuses: list[MemberStatus]) -> None:
    rows = [
        (
            member.name,
            "Y" if member.joined else "N",
            faults(member),
            f"{member.startup_ms}ms",
            member.workloads,
        )
        for member in statuses
    ]
    output.table(_COLUMNS, rows)
