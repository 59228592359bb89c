"""``log checkpoint`` and ``log new-key``: sign the content of the log; and the options of servers that sign it."""

import asyncio
import contextlib
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cyclopts import Parameter

from engine import private_files
from engine.cli import failures, next_commands, options, output, server_location
from engine.log import port
from engine.log.kafka import address
from engine.process import checkpoint_signing, log_locations
from engine.proof import checkpoints

KEY_VARIABLE: Final = "REBALLAST_CHECKPOINT_KEY"
FILE: Final = "checkpoints.jsonl"
_STANDARD_OUTPUT: Final = "-"
_MAKE_KEY: Final = "make one: reballast log new-key checkpoint.key"
_NAME_CHECKPOINTS: Final = "name a file or address to which `reballast log checkpoint --to` has written"
_USE_KEY: Final = "use the FILE.pub that `reballast log new-key FILE` wrote"
_DEFAULT_INTERVAL: Final = "10m"
"""Time between checkpoints if the user gives none."""

LogOption = Annotated[
    str,
    Parameter(
        name="--log",
        help="Data directory, log file, or kafka://host:port[,host:port][/prefix]; by default the log in --data.",
    ),
]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Signing:
    """Signed checkpoints of the log, made by the server itself."""

    checkpoint_key: Annotated[
        Path | None, Parameter(help="Sign checkpoints of the log with this key (see `log checkpoint`).")
    ] = None
    checkpoint_every: Annotated[str, Parameter(help="Time between checkpoints: 10m, 1h30m, 90s.")] = (
        _DEFAULT_INTERVAL
    )
    checkpoint_to: Annotated[
        str,
        Parameter(help=f"File or kafka:// address to append to; by default {FILE} in the data directory."),
    ] = ""

    def schedule(self, directory: Path) -> checkpoint_signing.Schedule | None:
        """Return the interval, key and destination of checkpoints; None if none are made. Raises Failure."""
        if self.checkpoint_key is None and not os.environ.get(KEY_VARIABLE):
            if self.checkpoint_to or self.checkpoint_every != _DEFAULT_INTERVAL:
                option = "--checkpoint-to" if self.checkpoint_to else "--checkpoint-every"
                raise failures.usage(f"{option} needs --checkpoint-key FILE", _MAKE_KEY)
            return None
        every_s = options.read_duration("--checkpoint-every", self.checkpoint_every) / 1_000
        if not every_s:
            raise failures.usage(
                "--checkpoint-every must be longer than 0 s", "write it as 10m, 1h30m or 90s"
            )
        destination = self.checkpoint_to or str(directory / FILE)
        _check_destination(destination)
        return checkpoint_signing.Schedule(read_private_key(self.checkpoint_key), every_s, destination)


SIGNING: Final = Signing()


def _check_destination(where: str) -> None:
    """Raise Failure for an invalid ``kafka://`` address; any other text is taken as the path of a file."""
    if where.startswith(f"{address.SCHEME}://"):
        try:
            address.parse(where)
        except address.AddressError as error:
            raise failures.usage(str(error), "name a file, or kafka://host:port") from None


def location_of(log: str, server: options.Server) -> log_locations.LogLocation:
    """Return the location of ``log``; if empty, of the data directory's log. Raises Failure if there is no log."""
    where = log or str(server.data or server_location.default_directory())
    with failures.convert(port.LogError, "name a log: --log DIRECTORY, FILE or kafka://host:port"):
        return log_locations.parse(where)


def read_private_key(path: Path | None) -> Ed25519PrivateKey:
    """Return the key in a file or, without a path, in the environment variable. Raises Failure."""
    text = os.environ.get(KEY_VARIABLE, "")
    with failures.convert((OSError, checkpoints.SigningError), _MAKE_KEY, where=path or KEY_VARIABLE):
        if path is not None:
            return checkpoints.private_key(path.read_bytes())
        if text:
            return checkpoints.private_key(text.encode())
    raise failures.usage("no key to sign with: give --key FILE", _MAKE_KEY)


def new_key(
    path: Annotated[Path, Parameter(help="File for the private key; the public key is written to PATH.pub.")],
    /,
    *,
    as_json: options.AsJson = False,
) -> int:
    public_path = path.with_name(f"{path.name}.pub")
    for file in (path, public_path):
        if file.exists():
            raise failures.Failure(f"{file} exists already; it was not changed", "choose another name")
    private, public = checkpoints.new_keys()
    with failures.convert(OSError, "choose another path", where=path):
        private_files.write(path, private)
        public_path.write_bytes(public)
    fingerprint = checkpoints.fingerprint(checkpoints.public_key(public))
    if as_json:
        output.json({"key": str(path), "publicKey": str(public_path), "fingerprint": fingerprint})
    else:
        output.print_line(f"{path} signs (keep it secret), {public_path} verifies; fingerprint {fingerprint}")
    return failures.OK


def checkpoint(
    *,
    key: Annotated[
        Path | None,
        Parameter(help=f"File with the private key (PEM); by default its text is in {KEY_VARIABLE}."),
    ] = None,
    to: Annotated[
        str, Parameter(help="File or kafka:// address to append to, - for standard output.")
    ] = _STANDARD_OUTPUT,
    log: LogOption = "",
    server: options.Server = options.SERVER,
) -> int:
    signer = read_private_key(key)
    _check_destination(to)
    log_location = location_of(log, server)
    verify = "log verify --checkpoint FILE --public-key FILE"
    remedy = next_commands.hint("see what differs", verify, next_commands.LOG)
    with (
        failures.convert((checkpoints.CheckpointError, port.LogError), remedy),
        failures.convert(OSError, "choose another path", where=to),
        output.waiting("reading the log"),
    ):
        made = asyncio.run(_sign(log_location, to, signer))
    if to == _STANDARD_OUTPUT:
        return failures.OK
    if server.json:
        output.json([{"number": checkpoint.number, "time": checkpoint.time, "to": to} for checkpoint in made])
    elif made:
        steps = sum(head.step for head in made[-1].heads)
        output.print_line(f"signed: {made[-1].number} records, {steps} steps; appended to {to}")
    else:
        output.print_line(f"nothing new since the last checkpoint in {to}")
    return failures.OK


async def _sign(
    location: log_locations.LogLocation, to: str, signer: Ed25519PrivateKey
) -> list[checkpoints.Checkpoint]:
    async with contextlib.AsyncExitStack() as stack:
        sink = (
            _StandardOutput()
            if to == _STANDARD_OUTPUT
            else await stack.enter_async_context(checkpoint_signing.sink(to))
        )
        log = await stack.enter_async_context(log_locations.opened(location))
        if not log.last_number():
            raise failures.Failure("the log is empty: there is nothing to sign")
        return await checkpoint_signing.extend(log, sink, signer, time.time_ns() // 1_000_000)


class _StandardOutput:
    """A sink that prints checkpoints to standard output; it has no earlier checkpoints."""

    async def lines(self) -> list[bytes]:
        return []

    async def last(self) -> bytes:
        return b""

    async def append(self, line: bytes) -> None:
        sys.stdout.write(line.decode() + "\n")


def read_checkpoints(where: str, public_key: Path | None) -> list[checkpoints.Checkpoint]:
    """The signed checkpoints in a file or topic. Raises Failure if one is not signed by the key."""
    if public_key is None:
        raise failures.usage("--checkpoint needs --public-key FILE", _USE_KEY)
    _check_destination(where)
    with failures.convert((OSError, checkpoints.SigningError), _USE_KEY, where=public_key):
        key = checkpoints.public_key(public_key.read_bytes())
    with (
        failures.convert(checkpoints.CheckpointError, "the log is not proved", where=where),
        failures.convert((OSError, port.LogError), _NAME_CHECKPOINTS, where=where),
    ):
        result = checkpoints.read(asyncio.run(_lines(where)), key)
    if not result:
        remedy = next_commands.hint("make one", "log checkpoint", next_commands.LOG)
        raise failures.Failure(f"{where} has no checkpoints", remedy)
    return result


async def _lines(where: str) -> list[bytes]:
    async with checkpoint_signing.sink(where) as sink:
        return await sink.lines()
