"""``apply`` and ``delete``: files, directories and standard input go to the server as they are."""

import sys
from pathlib import Path
from typing import Annotated, Final, Literal

from cyclopts import Parameter

from engine.cli import failures, options, results
from engine.cli.client import Client, Json

_SUFFIXES: Final = frozenset({".yaml", ".yml", ".json"})
_STDIN: Final = "-"

Files = Annotated[
    list[str],
    Parameter(
        name=["--filename", "-f"],
        negative=(),
        allow_leading_hyphen=True,
        help="File, directory, or - for standard input; may be repeated.",
    ),
]
Validation = Annotated[
    Literal["strict", "warn", "ignore"],
    Parameter(help="Fields that nobody knows: refuse the object, leave them out and say so, or only that."),
]
DryRun = Annotated[bool, Parameter(name="--dry-run", negative=(), help="Check and show, write nothing.")]


def apply(
    *,
    filename: Files,
    validate: Validation = "strict",
    dry_run: DryRun = False,
    place: options.Place = options.PLACE,
    server: options.Server = options.SERVER,
) -> int:
    """Create or change objects as files say.

    What is right is applied, what is wrong is reported with file, line, field, reason and remedy.
    """
    found: list[Json] = []
    with server.client() as client:
        for name, content in read(filename):
            query = {"file": name, "namespace": place.namespace, "validate": validate, "dryRun": dry_run}
            found.extend(client.command("apply", content, query))
    return _told(found, as_json=server.json)


def delete(
    kind: str = "",
    /,
    *names: str,
    filename: Files = [],  # noqa: B006  # cyclopts makes a new list for each call
    dry_run: DryRun = False,
    place: options.Place = options.PLACE,
    server: options.Server = options.SERVER,
) -> int:
    """Delete objects by file, or by kind and name.

    A deleted template is withdrawn everywhere; a deleted policy leaves what it placed.
    """
    if bool(filename) == bool(kind):
        raise failures.usage("name either files (-f) or a kind and names", "reballast delete deploy foo")
    if kind:
        kind, names = _split(kind, names)
        with server.client() as client:
            named = _by_name(client, kind, names, place.namespace, dry_run=dry_run)
        return results.tell(named, as_json=server.json)
    found: list[Json] = []
    with server.client() as client:
        for name, content in read(filename):
            query = {"file": name, "namespace": place.namespace, "dryRun": dry_run}
            found.extend(client.command("delete", content, query))
    return _told(found, as_json=server.json)


def read(names: list[str]) -> list[tuple[str, bytes]]:
    """The contents of files, with their names; of a directory all YAML and JSON files in it, by name.

    Raises Failure for what can't be read.
    """
    found: list[tuple[str, bytes]] = []
    for name in names:
        if name == _STDIN:
            found.append(("standard input", sys.stdin.buffer.read()))
            continue
        path = Path(name)
        try:
            if path.is_dir():
                files = sorted(each for each in path.iterdir() if each.suffix in _SUFFIXES)
                if not files:
                    raise failures.Failure(f"{name} holds no .yaml, .yml or .json file")
            else:
                files = [path]
            found.extend((str(each), each.read_bytes()) for each in files)
        except OSError as error:
            raise failures.Failure(f"{name}: {error.strerror}", "name a file that can be read") from None
    return found


def _split(kind: str, names: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """``deploy/foo`` means the same as ``deploy foo``."""
    if not names and "/" in kind:
        kind, _slash, name = kind.partition("/")
        return kind, (name,)
    if not names:
        raise failures.usage(f"which {kind}? give a name", f"reballast delete {kind} NAME")
    return kind, names


def _by_name(
    client: Client, kind: str, names: tuple[str, ...], namespace: str, *, dry_run: bool
) -> list[Json]:
    found: list[Json] = []
    for name in names:
        query = {"kind": kind, "name": name, "namespace": namespace, "dryRun": dry_run}
        found.extend(client.command("delete", b"", query))
    return found


def _told(found: list[Json], *, as_json: bool) -> int:
    if not found and not as_json:
        raise failures.Failure(
            "nothing was given: the files hold no objects", "write some, or name other files"
        )
    return results.tell(found, as_json=as_json)
