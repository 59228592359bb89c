"""``members``, ``fault``, ``heal``: list the simulated clusters and inject faults."""

from typing import Annotated, Final, Literal
from urllib.parse import quote

from cyclopts import Parameter, validators

from engine.cli import failures, options, output, table_rows
from events.json_values import Json, objects_at

Fault = Literal["down", "slow", "losing", "lagging", "throttled", "failing"]
Amount = Annotated[
    int | None,
    Parameter(
        help="How many times slower replicas start (slow), milliseconds for each request (lagging), or n: each n-th "
        "report is lost (losing), each n-th request is refused (throttled, failing).",
        validator=validators.Number(gte=1),
    ),
]
_COLUMNS: Final = ("NAME", "JOINED", "FAULTS", "START-UP", "WORKLOADS")


def members(*, server: options.Server = options.SERVER) -> None:
    """List the simulated clusters and their faults."""
    with server.client() as client:
        answer = client.find("members")
    if answer is None:
        raise failures.Failure("no members are simulated here", "start the server without --no-members")
    _show(answer, as_json=server.json)


def fault(
    member: str, kind: Fault, /, *, amount: Amount = None, server: options.Server = options.SERVER
) -> None:
    """Add a fault to a simulated cluster."""
    if kind == "down" and amount is not None:
        raise failures.usage("down has no amount", f"reballast fault {member} down")
    body: Json = {"kind": kind, **({} if amount is None else {"amount": amount})}
    with server.client() as client:
        _show(client.post(f"members/{quote(member, safe='')}/fault", body), as_json=server.json)


def heal(member: str, /, *, server: options.Server = options.SERVER) -> None:
    """Remove all faults of a simulated cluster."""
    with server.client() as client:
        _show(client.post(f"members/{quote(member, safe='')}/heal", {}), as_json=server.json)


def faults(member: Json) -> str:
    """The faults of a member as text."""
    slowness, every = int(str(member.get("slowness", 1))), int(str(member.get("loseEvery", 0)))
    lag, throttled, failing = (
        int(str(member.get(name, 0))) for name in ("lagMs", "throttleEvery", "failEvery")
    )
    texts = [
        *(["down"] if member.get("down") else []),
        *([f"slow ({slowness} times)"] if slowness > 1 else []),
        *([f"losing (1 report in {every})"] if every else []),
        *([f"lagging ({lag} ms)"] if lag else []),
        *([f"throttled (1 request in {throttled})"] if throttled else []),
        *([f"failing (1 request in {failing})"] if failing else []),
    ]
    return ", ".join(texts) or table_rows.NONE


def _show(answer: Json, *, as_json: bool) -> None:
    members_ = objects_at(answer, "items")
    if as_json:
        output.json(members_)
        return
    rows = [
        (
            member.get("name"),
            "Y" if member.get("joined") else "N",
            faults(member),
            f"{member.get('startupMs')}ms",
            member.get("workloads"),
        )
        for member in members_
    ]
    output.table(_COLUMNS, rows)
