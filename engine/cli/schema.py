"""``schema``: JSON Schemas and the AsyncAPI document of the events, for producers in other languages."""

from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import Parameter

from engine.cli import failures, output
from events import release, schemas

To = Annotated[Path | None, Parameter(help="Directory to write to; created if it does not exist.")]


def schema(*, to: To = None) -> None:
    document = schemas.asyncapi(release.RELEASE)
    if to is None:
        output.json(document)
        return
    files = {"asyncapi.json": document} | {
        f"{name}.json": content for name, content in schemas.json_schemas().items()
    }
    with failures.convert(OSError, "use a writable directory", where=to):
        to.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            (to / name).write_bytes(msgspec.json.format(msgspec.json.encode(content), indent=2) + b"\n")
    output.print_line(f"{len(files)} files written to {to}")
