"""Objects of the Kubernetes API for commands that write: paths, requests, and results of writes.

A refused write is a result with ``problems``; other errors raise Failure.
"""

import re
from collections.abc import Callable
from http import HTTPStatus
from typing import Final, NamedTuple
from urllib.parse import quote

import msgspec
from msgspec import Struct, structs

from engine.agent import discovery
from engine.cli import failures, next_commands, results, server_reads
from engine.cli.client import Client, Parameter, Reply
from engine.cli.results import Problem, Result
from engine.objects import manifests
from events.json_values import Json, as_text, at, object_at
from events.kube_objects import KubeObject
from events.validation import known_kinds as kinds
from events.validation.known_kinds import Kind

MANAGER: Final = "reballast-cli"
"""Field manager of the command line."""

MERGE: Final = {"content-type": "application/merge-patch+json"}
TRIES: Final = 20
"""Maximum number of tries of a write that conflicts with writes of other clients."""

REFUSED: Final = "refused"
LATE: Final = "late"
UNKNOWN: Final = "unknown"


_VERDICTS: Final = {
    400: REFUSED,
    403: REFUSED,
    404: results.NOT_FOUND,
    409: LATE,
    413: REFUSED,
    422: REFUSED,
    504: UNKNOWN,
}
_REMEDIES: Final = {
    LATE: "read it again, then retry",
    UNKNOWN: "check whether the change was made, then retry",
}
_UNKNOWN_FIELD: Final = "correct or remove it"
_UNKNOWN_FIELD_OF_FILE: Final = f"{_UNKNOWN_FIELD}, or apply with --validate=warn"
_GROUP_AND_VERSION: Final = 2
_SEGMENT: Final = re.compile(r"[^\x00-\x1f\x7f]+")
_STRICT: Final = re.compile(r'(unknown|duplicate) field "([^"]*)"')

_MISTYPED: Final = re.compile(r"json: cannot unmarshal (\w+) into Go struct field \w+\.(\S+) of type (\S+)")
"""Matches the API server's message about a value of a wrong type: (actual type, path of the field, expected type)."""


class _Cause(Struct, frozen=True):
    field: str = ""
    message: str = ""


class _Details(Struct, frozen=True):
    name: str = ""
    causes: list[_Cause] = []


class _Status(Struct, frozen=True):
    message: str = ""
    details: _Details = _Details()


def is_segment(text: str) -> bool:
    """Whether a text may be a segment of a path: names of objects, of namespaces, and the parts of an apiVersion."""
    return text not in {".", ".."} and _SEGMENT.fullmatch(text) is not None


class Target(NamedTuple):
    """One object by name; ``namespace`` is empty for cluster-scoped kinds."""

    resource: Kind
    namespace: str
    name: str

    @property
    def kind_label(self) -> str:
        """The kind as kubectl prints it: ``deployment.apps``."""
        return self.resource.resource

    @property
    def collection(self) -> str:
        """The path of the collection, for POST; raises Failure if the namespace is not a valid path segment."""
        if self.namespace and not is_segment(self.namespace):
            raise failures.usage(f'"{self.namespace}" is not the name of a namespace')
        return self.resource.path(self.namespace).removeprefix("/")

    def check_name(self) -> None:
        """Raise Failure if the name is not a valid path segment: the path would be that of another resource."""
        if not is_segment(self.name):
            raise failures.usage(
                f'"{self.name}" is not the name of a {self.kind_label}', "give the name of one object"
            )

    @property
    def path(self) -> str:
        """The path of the object; raises Failure as ``check_name`` does."""
        self.check_name()
        return f"{self.collection}/{quote(self.name, safe='')}"


class Options(NamedTuple):
    """Strictness of field validation, and dry run."""

    validation: str = "Strict"
    dry_run: bool = False

    @property
    def query(self) -> dict[str, Parameter]:
        """The query parameters for these options."""
        dry_run = {"dryRun": "All"} if self.dry_run else {}
        return {"fieldManager": MANAGER, "fieldValidation": self.validation, **dry_run}


STRICT: Final = Options()


class KubeObjects:
    """Look up kinds, read and write objects. Kinds are cached."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self._served: dict[str, list[discovery.Resource]] = {}

    def resource(self, api_version: str, kind: str) -> Kind | None:
        """The kind by its name; None if the server does not serve it."""
        known = kinds.of(api_version, kind)
        if known is not None:
            return known
        segments = api_version.split("/")
        if len(segments) > _GROUP_AND_VERSION or not all(map(is_segment, segments)):
            return None
        if api_version not in self._served:
            root = "apis" if "/" in api_version else "api"
            reply = self.client.kubernetes("GET", f"{root}/{quote(api_version)}")
            self._served[api_version] = discovery.of_version(api_version, reply.body)
        return next((resource for resource in self._served[api_version] if resource.kind == kind), None)

    def target(self, kind_name: str, namespace: str, name: str) -> Target:
        """The object; ``kind_name`` is any name that kubectl accepts: ``deploy``. Raises Failure if it is unknown."""
        kind = kinds.find(kind_name) or server_reads.discovered(self.client, kind_name)
        if kind is None:
            raise server_reads.unknown_kind(kind_name)
        return Target(kind, namespace if kind.namespaced else "", name)

    def get(self, target: Target) -> KubeObject | None:
        """The current object; None if it does not exist. Raises Failure if it may not be read."""
        reply = self.client.kubernetes("GET", target.path)
        if reply.code == HTTPStatus.NOT_FOUND:
            return None
        if reply.is_refusal:
            raise failures.Failure(str(reply.body.get("message", "")))
        return KubeObject(reply.body)

    def create(self, target: Target, value: KubeObject, options: Options = STRICT) -> Reply:
        return self.client.kubernetes("POST", target.collection, value.document, query=options.query)

    def replace(self, target: Target, value: KubeObject, options: Options = STRICT) -> Reply:
        return self.client.kubernetes("PUT", target.path, value.document, query=options.query)

    def patch(self, target: Target, patch: Json, options: Options = STRICT, part: str = "") -> Reply:
        """Change an object, or a subresource such as ``scale``, by a merge patch."""
        path = f"{target.path}/{part}" if part else target.path
        return self.client.kubernetes("PATCH", path, patch, headers=MERGE, query=options.query)

    def delete(self, target: Target, *, dry_run: bool = False) -> Result:
        """Delete an object; return the result."""
        query = {"dryRun": "All"} if dry_run else {}
        reply = self.client.kubernetes("DELETE", target.path, query=query)
        return result(target, "deleted" + " (dry run)" * dry_run, reply)

    def change(self, target: Target, action: str, compute: Callable[[KubeObject], Json | None]) -> Result:
        """Patch an object by a function of its current state; after a conflict, try again.

        ``compute`` returns a merge patch, or None if nothing is to be changed. Returns the result of the write.
        """
        tries = 0
        while True:
            live = self.get(target)
            if live is None:
                return not_found(target)
            patch = compute(live)
            if patch is None:
                return named(target, "unchanged")
            metadata = object_at(patch, "metadata")
            # With the resourceVersion, the server refuses the patch if another client wrote since ``get``.
            version = {"resourceVersion": live.resource_version}
            reply = self.patch(target, {**patch, "metadata": {**metadata, **version}})
            tries += 1
            if verdict(reply) != LATE or tries == TRIES:
                return result(target, action, reply)


def named(target: Target, action: str) -> Result:
    """Return the result of a successful write, without the object's resourceVersion."""
    return Result(action=action, resource=target.kind_label, name=target.name, namespace=target.namespace)


def result(target: Target, action: str, reply: Reply, source: manifests.Document | None = None) -> Result:
    """The result of a write: ``action`` on success, else the problems, with their lines in the file."""
    if reply.is_refusal:
        outcome = refused(target, _problems(target, reply, is_file=source is not None), source)
    else:
        version = as_text(at(reply.body, "metadata", "resourceVersion"))
        outcome = structs.replace(named(target, action), resource_version=version)
    return structs.replace(outcome, warnings=reply.warnings) if reply.warnings else outcome


def refused(target: Target, problems: list[Problem], source: manifests.Document | None = None) -> Result:
    """The result of a refused write."""
    if source is not None:
        problems = [with_position(source, problem) for problem in problems]
    return structs.replace(named(target, ""), problems=problems)


def not_found(target: Target) -> Result:
    """The result for an object that does not exist."""
    return refused(target, [_not_found_problem(target)])


def verdict(reply: Reply) -> str:
    """One word for a refusal's cause; empty on success."""
    return _VERDICTS.get(reply.code, UNKNOWN) if reply.is_refusal else ""


def with_position(source: manifests.Document, problem: Problem) -> Problem:
    """The problem with its position in the file."""
    line = manifests.line_of(source, problem.field or "")
    return structs.replace(problem, file=source.file, document=source.index, line=line)


def _problems(target: Target, reply: Reply, *, is_file: bool) -> list[Problem]:
    """Problems of a refusal, one for each field that the server names; ``is_file``: the object is from a file."""
    status, refusal = msgspec.convert(reply.body, _Status), verdict(reply)
    if reply.code == HTTPStatus.NOT_FOUND and status.details.name == target.name:
        return [_not_found_problem(target)]
    if reply.code == HTTPStatus.NOT_FOUND and status.details.name == target.namespace:
        reason = f'the namespace "{target.namespace}" does not exist'
        return [Problem(verdict=REFUSED, reason=reason, remedy="apply the Namespace first")]
    unknown = _UNKNOWN_FIELD_OF_FILE if is_file else _UNKNOWN_FIELD
    strict = [
        Problem(verdict=REFUSED, field=field, reason="unknown field", remedy=unknown)
        if problem == "unknown"
        else Problem(verdict=REFUSED, field=field, reason="duplicate field", remedy="remove one")
        for problem, field in _STRICT.findall(status.message)
    ]
    if strict and "strict decoding error" in status.message:
        return strict
    if mistyped := _MISTYPED.search(status.message):
        actual, field, expected = mistyped.groups()
        remedy = "write it in quotes" if expected == "string" and actual != "object" else None
        return [
            Problem(
                verdict=REFUSED,
                field=field,
                reason=f"is of type {actual}, must be of type {expected}",
                remedy=remedy,
            )
        ]
    caused = [
        Problem(verdict=refusal, field=cause.field, reason=cause.message) for cause in status.details.causes
    ]
    return caused or [Problem(verdict=refusal, reason=status.message, remedy=_REMEDIES.get(refusal))]


def _not_found_problem(target: Target) -> Problem:
    where = f" in namespace {target.namespace}" if target.namespace else ""
    return Problem(
        verdict=results.NOT_FOUND,
        reason=f'{target.kind_label} "{target.name}" not found{where}',
        remedy=next_commands.hint("see", f"get {target.resource.plural}{' -A' * target.resource.namespaced}"),
    )
