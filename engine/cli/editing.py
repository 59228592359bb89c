"""``edit``: an object in an editor; what was changed goes to the server as a patch."""

import os
import shlex
import subprocess
import tempfile
from pathlib import Path
from typing import Final, cast

from engine.cli import changing, failures, listing, options, reading, results, showing, yamls
from engine.cli.client import Client, Json
from engine.gateway import door_merging as merging
from engine.gateway.door_results import LATE
from engine.objects import manifests
from engine.objects.manifest_limits import Limits
from events import limits

_LIMITS: Final = Limits(
    content_bytes_max=2 * limits.OBJECT_BYTES_MAX,
    documents_max=1,
    depth_max=limits.DEPTH_MAX,
    repeated_bytes_max=limits.OBJECT_BYTES_MAX,
)
_HEAD: Final = """# Change the object, save it, and close the editor. Saved unchanged, or empty, nothing happens.
# Its status and the metadata that the server keeps are not changed by this.
"""
_EDITOR: Final = "vi"
_TRIES: Final = 20
"""Of a patch, while others write to the same object."""


def edit(
    kind: str,
    name: str = "",
    /,
    *,
    place: options.Place = options.PLACE,
    server: options.Server = options.SERVER,
) -> int:
    """Change an object in your editor."""
    kind, name = changing.split(kind, name)
    with server.client() as client:
        return _edit(client, kind, name, place.namespace, as_json=server.json)


def _edit(client: Client, kind: str, name: str, namespace: str, *, as_json: bool) -> int:
    (before,) = reading.documents(client, reading.kind_of(kind), namespace=namespace, name=name)
    shown = _editable(before)
    path = Path(tempfile.mkdtemp(prefix="reballast-")) / f"{name}.yaml"
    after = _edited(shown, path)
    if after is None or after == shown:
        _remove(path)
        showing.warn("Edit cancelled, nothing was changed.")
        return failures.OK
    found = _sent(client, (kind, name, namespace), before, merging.difference(shown, after))
    named = [{**each, "action": "edited"} if each.get("action") == "patched" else each for each in found]
    code = results.tell(named, as_json=as_json)
    if code == failures.OK:
        _remove(path)
    else:
        showing.warn(f"  what you wrote is in {path}")
    return code


def _editable(document: Json) -> Json:
    return merging.remember_nothing({field: value for field, value in document.items() if field != "status"})


def _sent(client: Client, target: tuple[str, str, str], before: Json, patch: Json) -> list[Json]:
    """The results of the patch; asked again while only fields that it leaves alone were changed meanwhile.

    The server writes to the same objects (a cluster's capacity, say, whenever something is placed there), and people
    must not have to be faster than it.
    """
    kind, name, namespace = target
    newest, tries = before, 0
    while True:
        version = int(str(listing.part(newest, "metadata").get("resourceVersion", 0)))
        body: Json = {
            "kind": kind,
            "name": name,
            "namespace": namespace,
            "patch": patch,
            "resourceVersion": version,
        }
        found = client.command("patch", body)
        tries += 1
        if tries == _TRIES or not _is_late(found):
            return found
        (newest,) = reading.documents(client, reading.kind_of(kind), namespace=namespace, name=name)
        if merging.is_contested(patch, _editable(before), _editable(newest)):
            return found


def _is_late(found: list[Json]) -> bool:
    problems = (problem for result in found for problem in cast("list[Json]", result.get("problems", [])))
    return any(problem.get("verdict") == LATE for problem in problems)


def _edited(shown: Json, path: Path) -> Json | None:
    """The object as it was saved; None for an empty file. What can't be read is left where it is."""
    path.write_text(_HEAD + yamls.dump(shown), encoding="utf-8")
    _open_editor(path)
    found = manifests.read(path.read_bytes(), file=path.name, limits=_LIMITS)
    first = found[0] if found else None
    if isinstance(first, manifests.Fault):
        place = f"line {first.line}: {first.field}" if first.field else f"line {first.line}"
        raise failures.Failure(f"{place}: {first.reason}", f"what you wrote is in {path}")
    return first.value if first is not None else None


def _remove(path: Path) -> None:
    path.unlink()
    path.parent.rmdir()


def _open_editor(path: Path) -> None:
    words = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or _EDITOR)
    try:
        done = subprocess.run([*words, str(path)], check=False)  # noqa: S603  # the editor is the user's choice
    except OSError as error:
        reason = f"the editor {words[0]!r} can't be started: {error.strerror}"
        raise failures.Failure(reason, "set EDITOR to one that is there") from None
    if done.returncode:
        raise failures.Failure(f"the editor {words[0]!r} ended with {done.returncode}", "nothing was changed")
