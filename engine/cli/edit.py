"""``edit``: open an object in an editor and send the changes as a patch."""

import os
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from engine.cli import (
    failures,
    kube_objects,
    next_commands,
    options,
    output,
    results,
    set_properties,
    three_way,
    yaml_output,
)
from engine.cli.kube_objects import KubeObjects, Target
from engine.cli.results import Problem, Result
from engine.objects import manifests
from engine.objects.manifest_limits import Limits
from events import limits
from events.json_values import Json
from events.kube_objects import KubeObject

_LIMITS: Final = Limits(
    content_bytes_max=2 * limits.OBJECT_BYTES_MAX,
    documents_max=1,
    depth_max=limits.DEPTH_MAX,
    repeated_bytes_max=limits.OBJECT_BYTES_MAX,
)
_HEAD: Final = """# Change the object, save the file, and close the editor. An unchanged or empty file changes nothing.
# The status of the object, and metadata that the server manages, cannot be changed here.
"""
_EDITOR: Final = "vi"
_FILE_NAME_BYTES_MAX: Final = 200


def edit(
    kind: options.Kind,
    name: options.Name = "",
    /,
    *,
    scope: options.NamespaceOption = options.NAMESPACE,
    server: options.Server = options.SERVER,
) -> int:
    kind, name = set_properties.split(kind, name)
    with server.client() as client:
        objects = KubeObjects(client)
        return _edit(objects, objects.target(kind, scope.namespace, name), as_json=server.json)


def _edit(objects: KubeObjects, target: Target, *, as_json: bool) -> int:
    before = objects.get(target)
    if before is None:
        return results.print_results([kube_objects.not_found(target)], as_json=as_json)
    shown = _editable(before)
    file_name = target.name.encode()[:_FILE_NAME_BYTES_MAX].decode(errors="ignore")
    path = Path(tempfile.mkdtemp(prefix="reballast-")) / f"{file_name}.yaml"
    after = _edited(shown, path)
    if after is None or after == shown.document:
        _remove(path)
        output.warn("Edit cancelled, nothing was changed.")
        return failures.OK
    code = results.print_results([_sent(objects, target, shown, after)], as_json=as_json)
    if code == failures.OK:
        _remove(path)
    else:
        output.warn(f"  your edits are saved in {path}")
    return code


def _editable(value: KubeObject) -> KubeObject:
    return three_way.as_read(value).without_fields("status").without_metadata("selfLink")


def _sent(objects: KubeObjects, target: Target, before: KubeObject, after: Json) -> Result:
    """Send the changes as a patch; after a conflict, try again unless another client changed the same fields.

    Without retries an edit would often fail, because the server writes to the same objects, for example a
    cluster's capacity.
    """
    patch = three_way.difference(before.document, after)

    def compute(live: KubeObject) -> Json | None:
        is_contested = three_way.is_conflict(patch, before.document, _editable(live).document)
        return None if is_contested else patch

    outcome = objects.change(target, "edited", compute)
    if outcome.action != "unchanged":
        return outcome
    reason = "another client changed the same fields meanwhile"
    namespace = next_commands.namespace(target.namespace)
    remedy = next_commands.hint("edit it again", f"edit {target.resource.plural} {target.name}{namespace}")
    return kube_objects.refused(target, [Problem(verdict=kube_objects.LATE, reason=reason, remedy=remedy)])


def _edited(shown: KubeObject, path: Path) -> Json | None:
    """Open the editor and parse the saved file; None if it is empty.

    Raises Failure if the file is invalid, and keeps it.
    """
    content = (_HEAD + yaml_output.dump(shown.document)).encode()
    path.write_bytes(content)
    try:
        _open_editor(path)
    except failures.Failure as failure:
        if _saved(path) != content:
            raise failures.Failure(failure.message, f"your edits are saved in {path}") from None
        _remove(path)
        raise
    documents = manifests.read(_saved(path), file=path.name, limits=_LIMITS)
    first = documents[0] if documents else None
    if isinstance(first, manifests.Fault):
        position = f"line {first.line}: {first.field}" if first.field else f"line {first.line}"
        raise failures.Failure(f"{position}: {first.reason}", f"your edits are saved in {path}")
    return first.value if first is not None else None


def _saved(path: Path) -> bytes:
    """The content of the edited file; empty if the editor has removed it."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""


def _remove(path: Path) -> None:
    """Remove the edited file, its directory, and what the editor left there, such as a backup."""
    shutil.rmtree(path.parent, ignore_errors=True)


def _open_editor(path: Path) -> None:
    chosen = os.environ.get("VISUAL") or os.environ.get("EDITOR") or _EDITOR
    try:
        command = shlex.split(chosen) or [_EDITOR]
    except ValueError as error:
        raise failures.Failure(
            f"the editor {chosen!r} is not a command: {error}", "set EDITOR to an installed editor"
        ) from None
    try:
        done = subprocess.run([*command, str(path)], check=False)  # noqa: S603  # the editor is the user's choice
    except OSError as error:
        reason = f"the editor {command[0]!r} can't be started: {error.strerror}"
        raise failures.Failure(reason, "set EDITOR to an installed editor") from None
    if done.returncode:
        raise failures.Failure(
            f"the editor {command[0]!r} exited with code {done.returncode}", "nothing was changed"
        )
