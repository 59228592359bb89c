"""``apply`` and ``delete``: read files, directories and standard input; send each object to the Kubernetes API."""

import re
import shlex
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Final, Literal, NamedTuple, TypeAlias

from cyclopts import Parameter

from engine.cli import failures, kube_objects, next_commands, options, results, set_properties, three_way
from engine.cli.kube_objects import KubeObjects, Target
from engine.cli.results import Problem, Result
from engine.domain import marks
from engine.objects import manifests
from engine.objects.manifest_limits import Limits
from events import limits
from events.json_values import object_at
from events.kube_objects import KubeObject
from events.validation import known_kinds as kinds

_SUFFIXES: Final = frozenset({".yaml", ".yml", ".json"})
_STDIN: Final = "-"
_URL: Final = re.compile("https?://")
_SERVER_OWNED: Final = frozenset({"creationTimestamp", "generation", "managedFields", "selfLink"})
LIMITS: Final = Limits(
    content_bytes_max=32 * 1024 * 1024,
    documents_max=10_000,
    depth_max=limits.DEPTH_MAX,
    repeated_bytes_max=limits.OBJECT_BYTES_MAX,
)
"""Limits of files with objects."""

FileName: TypeAlias = str | Path
"""A file, a URL, or ``-``, always parsed as str, the first type. ``Path`` only makes shells complete file names."""

Files = Annotated[
    list[FileName],
    Parameter(
        name=["--filename", "-f"],
        negative=(),
        allow_leading_hyphen=True,
        help="File, directory, or - for standard input; may be repeated.",
    ),
]
Validation = Annotated[
    Literal["strict", "warn", "ignore"],
    Parameter(help="Unknown fields: refuse the object, drop them with a warning, or drop them silently."),
]
DryRun = Annotated[
    bool,
    Parameter(
        name="--dry-run", negative=(), help="Check the objects and show the results, but write nothing."
    ),
]


class _Document(NamedTuple):
    """An object in a file, and its API path."""

    source: manifests.Document
    target: Target
    value: KubeObject


def apply(
    *,
    filename: Files = [],  # noqa: B006  # cyclopts makes a new list for each call
    plan: Annotated[
        Path | None, Parameter(help="File from `reballast plan -o`; applied if its prediction still holds.")
    ] = None,
    validate: Validation = "strict",
    dry_run: DryRun = False,
    scope: options.NamespaceOption = options.NAMESPACE,
    server: options.Server = options.SERVER,
) -> int:
    if bool(filename) == (plan is not None) or (plan and dry_run):
        raise failures.usage("give either files (-f) or a plan", "reballast apply -f deployment.yaml")
    if plan is not None:
        from engine.cli.plan import saved_plans  # noqa: PLC0415  # plans are loaded only if one is applied

        return saved_plans.apply(plan, server)
    chosen = kube_objects.Options(validate.capitalize(), dry_run)
    with server.client() as client:
        outcomes = apply_files(KubeObjects(client), read(filename), scope.namespace, chosen)
        return _print_results(outcomes, as_json=server.json)


def delete(
    kind: options.Kind = "",
    /,
    *names: options.Names,
    filename: Files = [],  # noqa: B006  # cyclopts makes a new list for each call
    dry_run: DryRun = False,
    scope: options.NamespaceOption = options.NAMESPACE,
    server: options.Server = options.SERVER,
) -> int:
    outcomes = deletions(kind, names, filename, scope.namespace, dry_run=dry_run)
    with server.client() as client:
        return _print_results(outcomes(KubeObjects(client)), as_json=server.json)


def deletions(
    kind: str, names: tuple[str, ...], filename: list[FileName], namespace: str, *, dry_run: bool = False
) -> Callable[[KubeObjects], Iterator[Result]]:
    """Parse the arguments of ``delete``; return the function that deletes the objects and yields the results.

    Raises Failure for invalid arguments and files.
    """
    if bool(filename) == bool(kind):
        raise failures.usage("give either files (-f) or a kind and names", "reballast delete deploy foo")
    if filename:
        files = read(filename)
        return lambda objects: delete_files(objects, files, namespace, dry_run=dry_run)
    named = set_properties.split_all(kind, *names)

    def deleted(objects: KubeObjects) -> Iterator[Result]:
        targets = [objects.target(kind, namespace, name) for kind, name in named]
        return (objects.delete(target, dry_run=dry_run) for target in targets)

    return deleted


def apply_files(
    objects: KubeObjects,
    files: list[tuple[str, bytes]],
    namespace: str,
    chosen: kube_objects.Options = kube_objects.STRICT,
) -> Iterator[Result]:
    """Apply the objects in files, in order; yield a result for each."""
    for item in _documents(objects, files, namespace):
        yield (
            applied(objects, item.target, item.value, chosen, item.source)
            if isinstance(item, _Document)
            else item
        )


def delete_files(
    objects: KubeObjects, files: list[tuple[str, bytes]], namespace: str, *, dry_run: bool = False
) -> Iterator[Result]:
    """Delete the objects in files, in reverse order because of dependencies; yield a result for each."""
    for item in reversed(list(_documents(objects, files, namespace))):
        yield objects.delete(item.target, dry_run=dry_run) if isinstance(item, _Document) else item


def applied(
    objects: KubeObjects,
    target: Target,
    value: KubeObject,
    chosen: kube_objects.Options = kube_objects.STRICT,
    source: manifests.Document | None = None,
) -> Result:
    """Create or patch an object and return the result; after a conflict, try again from the newest version."""
    desired = three_way.with_last_applied(value)
    # A file that names a resourceVersion demands that version, so its conflicts are not retried.
    is_versioned = "resourceVersion" in desired.metadata
    dry_run = " (dry run)" * chosen.dry_run
    tries = 0
    while True:
        live = objects.get(target)
        if live is None:
            action, reply = "created", objects.create(target, desired, chosen)
        elif target.resource == kinds.CLUSTER and live.is_ending:
            return kube_objects.refused(target, [_leaving(target.name)], source)
        else:
            manifest = desired.without_fields("status").document
            patch = three_way.patch(three_way.last_applied(live), manifest, live.document)
            if not patch:
                return kube_objects.named(target, "unchanged" + dry_run)
            if three_way.last_applied(desired):
                reply = objects.patch(target, patch, chosen)
            else:
                metadata = {"resourceVersion": live.resource_version, **desired.metadata}
                reply = objects.replace(target, desired.with_fields({"metadata": metadata}), chosen)
            action = "unchanged" if _content(KubeObject(reply.body)) == _content(live) else "configured"
        tries += 1
        is_raced = kube_objects.verdict(reply) == kube_objects.LATE and not is_versioned
        if not is_raced or tries == kube_objects.TRIES:
            return kube_objects.result(target, action + dry_run, reply, source)


def read(names: list[FileName]) -> list[tuple[str, bytes]]:
    """Read files as (name, content) pairs; of a directory, all YAML and JSON files, sorted by name.

    Raises Failure if one can't be read.
    """
    contents: list[tuple[str, bytes]] = []
    for name in map(str, names):
        if _URL.match(name):
            raise failures.Failure(
                f"{name}: URLs are not supported",
                f"curl -sL {shlex.quote(name)} | {next_commands.command('apply -f -')}",
            )
        if name == _STDIN:
            contents.append(("standard input", sys.stdin.buffer.read()))
            continue
        path = Path(name)
        try:
            if path.is_dir():
                files = sorted(
                    child for child in path.iterdir() if child.suffix in _SUFFIXES and not child.is_dir()
                )
                if not files:
                    raise failures.Failure(
                        f"{name} contains no .yaml, .yml or .json file",
                        "name the files; directories in a directory are not read",
                    )
            else:
                files = [path]
            contents.extend((str(file), file.read_bytes()) for file in files)
        except OSError as error:
            raise failures.Failure(
                f"{error.filename or name}: {error.strerror}", "use a readable file"
            ) from None
    return contents


def no_objects() -> failures.Failure:
    """The failure for files without objects."""
    return failures.Failure("the files contain no objects", "name files with Kubernetes objects")


def _documents(
    objects: KubeObjects, files: list[tuple[str, bytes]], namespace: str
) -> Iterator[_Document | Result]:
    """Yield the objects in files, in order; for an object that can't be sent, a result with its problems."""
    for name, content in files:
        for entry in manifests.read(content, file=name, limits=LIMITS):
            yield (
                _unreadable(entry)
                if isinstance(entry, manifests.Fault)
                else _document(objects, entry, namespace)
            )


def _document(objects: KubeObjects, source: manifests.Document, namespace: str) -> _Document | Result:
    """Return a document's object and API path; a result with problems if it is incomplete or of an unknown kind."""
    value = source.value
    metadata = object_at(value, "metadata")
    api_version, kind, name = value.get("apiVersion"), value.get("kind"), metadata.get("name")
    for field, text in (("apiVersion", api_version), ("kind", kind), ("metadata.name", name)):
        if not isinstance(text, str) or not text:
            reason = "required" if text in (None, "") else "must be a string"
            return _misfit(source, Problem(verdict=kube_objects.REFUSED, field=field, reason=reason))
    resource = objects.resource(str(api_version), str(kind))
    if resource is None:
        reason = f'the server has no kind "{kind}" in {api_version}'
        known_kinds = {known.kind for known in kinds.KINDS if known.api_version == api_version}
        remedy = failures.suggestion(
            str(kind),
            known_kinds,
            "correct apiVersion and kind, or apply the kind's CustomResourceDefinition first",
        )
        return _misfit(
            source, Problem(verdict=kube_objects.REFUSED, field="kind", reason=reason, remedy=remedy)
        )
    kept = {field: item for field, item in metadata.items() if field not in _SERVER_OWNED}
    placed = str(metadata.get("namespace") or namespace) if resource.namespaced else ""
    for field, text in (("metadata.name", str(name)), ("metadata.namespace", placed)):
        if text and not kube_objects.is_segment(text):
            reason = f"{text!r} is not a name"
            return _misfit(source, Problem(verdict=kube_objects.REFUSED, field=field, reason=reason))
    kept.pop("namespace", None)
    if placed:
        kept["namespace"] = placed
    return _Document(source, Target(resource, placed, str(name)), KubeObject({**value, "metadata": kept}))


def _misfit(source: manifests.Document, problem: Problem) -> Result:
    kind = str(source.value.get("kind") or "object").lower()
    name = str(object_at(source.value, "metadata").get("name", ""))
    return Result(resource=kind, name=name, problems=[kube_objects.with_position(source, problem)])


def _unreadable(fault: manifests.Fault) -> Result:
    problem = Problem(
        verdict=kube_objects.REFUSED,
        field=fault.field,
        reason=fault.reason,
        remedy=fault.remedy,
        file=fault.file,
        document=fault.index,
        line=fault.line,
    )
    return Result(problems=[problem])


def _leaving(name: str) -> Problem:
    return Problem(
        verdict=kube_objects.LATE,
        field="metadata.deletionTimestamp",
        reason=f"cluster {name} is being removed and can't join again until that is finished",
        remedy=next_commands.hint(
            "wait until it is removed, or remove it at once", f"unjoin {name} --wait 0 --force"
        ),
    )


def _content(value: KubeObject) -> KubeObject:
    """The parts of an object that users write; a patch that leaves them equal did not change the object."""
    volatile = {"resourceVersion", "managedFields", "generation"}
    metadata = {name: item for name, item in value.metadata.items() if name not in volatile}
    for name in ("labels", "annotations"):
        # Leave out the policy's marks: a policy may claim the object between the two reads whose contents are compared.
        texts = object_at(metadata.pop(name, None))
        metadata[name] = {text: item for text, item in texts.items() if text not in marks.CLAIMS}
    return value.without_fields("status").with_fields({"metadata": metadata})


def _print_results(outcomes: Iterator[Result], *, as_json: bool) -> int:
    """Print the results; if the command fails or is interrupted, print the results up to that point."""
    written = results.carry_out(outcomes, as_json=as_json)
    if not written and not as_json:
        raise no_objects()
    return results.print_results(written, as_json=as_json)
