"""`reballast schedule`: scheduling decisions for JSON lines, without a log or a server.

Each line gets one line of output, in order. A line that can't be read gets an error with field and reason,
and the stream continues.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, BinaryIO, Final

import msgspec
from cyclopts import Parameter

from engine import broken_pipes
from engine.cli import failures
from engine.placement import decisions, explanations, fleet, parsing
from engine.placement import schedule as scheduling

LINE_BYTES_MAX: Final = 64 << 20


class Answer(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One decision; ``condition`` is ``STATUS/REASON`` of the binding's condition, empty if nothing had to be decided.

    The fields are those of the test vectors (recorded decisions of Karmada's scheduler).
    """

    id: parsing.Identity
    trigger: str
    clusters: list[parsing.TargetCluster]
    affinity_name: str
    condition: str
    errors: list[str]
    retry: bool
    explanation: explanations.Explanation | msgspec.UnsetType = msgspec.UNSET


class Refusal(msgspec.Struct, frozen=True, kw_only=True):
    """A line that can't be read: its number from 1, the path of the field, the reason."""

    line: int
    field: str
    reason: str


class Refused(msgspec.Struct, frozen=True, kw_only=True):
    """An output line for an unreadable input line; has a field ``error``, unlike a decision."""

    id: parsing.Identity = msgspec.UNSET
    error: Refusal


class _Scheduler:
    """Makes decisions for lines of input; consecutive lines with equal clusters share one fleet."""

    def __init__(self, *, explained: bool) -> None:
        self._explained = explained
        self._raw = b""
        self._fleet = fleet.Fleet()

    def answer(self, number: int, line: bytes) -> Answer | Refused:
        identity: parsing.Identity = msgspec.UNSET
        if len(line) > LINE_BYTES_MAX:
            return Refused(error=Refusal(line=number, field="", reason=f"longer than {LINE_BYTES_MAX} bytes"))
        try:
            envelope = parsing.read_envelope(line)
            identity = envelope.id
            return self._decide(identity, parsing.read_input(envelope, line))
        except parsing.UnreadableError as error:
            field, reason = error.field, error.reason
        except msgspec.ValidationError as error:
            located = parsing.located(error)
            field, reason = located.field, located.reason
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            field, reason = "", f"not readable as JSON: {error}"
        return Refused(id=identity, error=Refusal(line=number, field=field, reason=reason))

    def _decide(self, identity: parsing.Identity, scheduling_input: parsing.Input) -> Answer:
        raw = bytes(scheduling_input.clusters)
        if raw != self._raw:
            self._fleet = parsing.read_fleet(raw)
            self._raw = raw
        request = parsing.read_request(scheduling_input, self._fleet)
        decision = scheduling.schedule(request, self._fleet, explain=self._explained)
        explanation = decision.explanation
        return Answer(
            id=identity,
            trigger=request.trigger,
            clusters=[
                parsing.TargetCluster(name=name, replicas=replicas) for name, replicas in decision.clusters
            ],
            affinity_name=decision.affinity_name,
            condition=f"{decision.status}/{decision.reason}" if decision.status else "",
            errors=[decision.message] if decision.reason not in {"", decisions.SUCCESS} else [],
            retry=decision.retry,
            explanation=explanation if self._explained and explanation is not None else msgspec.UNSET,
        )


def schedule(
    file: Annotated[
        Path | None, Parameter(help="File with JSON lines; - or no file: standard input.")
    ] = None,
    *,
    explain: Annotated[bool, Parameter(help="Add the reasons why clusters were chosen or excluded.")] = False,
) -> None:
    try:
        if file is None or str(file) == "-":
            refused = answer_all(sys.stdin.buffer, sys.stdout.buffer, explained=explain)
        else:
            with file.open("rb") as stream:
                refused = answer_all(stream, sys.stdout.buffer, explained=explain)
    except BrokenPipeError:
        broken_pipes.discard(sys.stdout)
        raise SystemExit(1) from None
    except OSError as error:
        remedy = "use a readable file, or - for standard input"
        raise failures.Failure(f"{file}: {error.strerror}", remedy) from None
    if refused:
        raise SystemExit(1)


def answer_all(source: BinaryIO, sink: BinaryIO, *, explained: bool) -> int:
    """Answer each line of a stream as soon as it is read; return the number of refused lines."""
    scheduler = _Scheduler(explained=explained)
    encoder = msgspec.json.Encoder()
    refused = 0
    for number, line in enumerate(_lines(source), start=1):
        if len(line) <= LINE_BYTES_MAX and not line.strip():
            continue
        answer = scheduler.answer(number, line)
        refused += isinstance(answer, Refused)
        sink.write(encoder.encode(answer) + b"\n")
        sink.flush()
    return refused


def _lines(source: BinaryIO) -> Iterator[bytes]:
    """Yield the lines of a stream; a line over the limit is cut to the limit plus one byte."""
    while line := source.readline(LINE_BYTES_MAX + 1):
        rest = line
        while len(rest) > LINE_BYTES_MAX and not rest.endswith(b"\n"):
            rest = source.readline(LINE_BYTES_MAX + 1)
        yield line
