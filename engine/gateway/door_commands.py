"""The commands of the door as they come over HTTP: what each one takes, and what it calls.

No HTTP here: ``door_routes`` serves them, the OpenAPI document is made from them, the command line sends them.
"""

from collections.abc import Awaitable, Callable
from typing import Annotated, Final

import msgspec
from msgspec import Meta, Struct

from engine.gateway import door_clusters as members
from engine.gateway import door_wishes as wishes
from engine.gateway.door import Door, cluster_target
from engine.gateway.door_results import Result
from events import clusters, limits

Name = Annotated[str, Meta(min_length=1, max_length=253)]


class _Request(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Base of what is sent: unknown fields are refused."""


class _OfObject(_Request, frozen=True, kw_only=True):
    """One object: a kind in any of its names (``deploy``), a namespace, a name."""

    kind: Name
    name: Name
    namespace: str = "default"


class ScaleRequest(_OfObject, frozen=True, kw_only=True):
    """Another number of replicas."""

    replicas: Annotated[int, Meta(ge=0, le=limits.REPLICAS_MAX)]


class PatchRequest(_OfObject, frozen=True, kw_only=True):
    """A JSON merge patch; ``resource_version`` is the one that it was made from, 0 for any."""

    patch: dict[str, object]
    resource_version: Annotated[int, Meta(ge=0)] = 0


class LabelRequest(_OfObject, frozen=True, kw_only=True):
    """Labels to set, or with null to take away."""

    labels: dict[str, str | None]
    overwrite: bool = False


class ClusterLabelRequest(_Request, frozen=True, kw_only=True):
    """Labels of a cluster to set, or with null to take away."""

    labels: dict[str, str | None]
    overwrite: bool = False


class TaintValue(_Request, frozen=True, kw_only=True):
    """A taint to set."""

    key: Name
    effect: str
    value: str = ""


class TaintName(_Request, frozen=True, kw_only=True):
    """A taint to take away; without an effect, all with this key."""

    key: Name
    effect: str = ""


class TaintRequest(_Request, frozen=True, kw_only=True):
    """Taints of a cluster to set and to take away."""

    taints: tuple[TaintValue, ...] = ()
    removed: tuple[TaintName, ...] = ()


class UntaintRequest(_Request, frozen=True, kw_only=True):
    """Taints of a cluster to take away."""

    taints: Annotated[tuple[TaintName, ...], Meta(min_length=1)]


class NothingRequest(_Request, frozen=True, kw_only=True):
    """No body, or an empty object."""


class Answers(Struct, frozen=True, kw_only=True):
    """What became of each object, in the order in which they were sent."""

    results: tuple[Result, ...]


Run = Callable[[Door, Struct, str, str], Awaitable[Result]]


class Command(Struct, frozen=True, kw_only=True):
    """One command with a JSON body. ``run`` takes the door, the body, the cluster in the path, and the source."""

    path: str
    summary: str
    request: type[Struct]
    run: Run


async def _scale(door: Door, request: Struct, _cluster: str, source: str) -> Result:
    assert isinstance(request, ScaleRequest)  # noqa: S101  # the table below pairs them
    target = await door.target(request.kind, request.namespace, request.name)
    return target if isinstance(target, Result) else await door.scale(target, request.replicas, source=source)


async def _patch(door: Door, request: Struct, _cluster: str, source: str) -> Result:
    assert isinstance(request, PatchRequest)  # noqa: S101  # as above
    target = await door.target(request.kind, request.namespace, request.name)
    if isinstance(target, Result):
        return target
    return await door.patch(target, request.patch, seen=request.resource_version, source=source)


async def _label(door: Door, request: Struct, _cluster: str, source: str) -> Result:
    assert isinstance(request, LabelRequest)  # noqa: S101  # as above
    target = await door.target(request.kind, request.namespace, request.name)
    if isinstance(target, Result):
        return target
    return await door.label(target, request.labels, overwrite=request.overwrite, source=source)


async def _label_cluster(door: Door, request: Struct, cluster: str, source: str) -> Result:
    assert isinstance(request, ClusterLabelRequest)  # noqa: S101  # as above
    target = cluster_target(cluster)
    return await door.label(target, request.labels, overwrite=request.overwrite, source=source)


async def _taint(door: Door, request: Struct, cluster: str, source: str) -> Result:
    assert isinstance(request, TaintRequest)  # noqa: S101  # as above
    added = [clusters.Taint(key=item.key, effect=item.effect, value=item.value) for item in request.taints]
    removed = [members.TaintKey(key=item.key, effect=item.effect) for item in request.removed]
    return await door.taint(cluster, added=added, removed=removed, source=source)


async def _untaint(door: Door, request: Struct, cluster: str, source: str) -> Result:
    assert isinstance(request, UntaintRequest)  # noqa: S101  # as above
    removed = [members.TaintKey(key=item.key, effect=item.effect) for item in request.taints]
    return await door.taint(cluster, removed=removed, source=source)


async def _cordon(door: Door, _request: Struct, cluster: str, source: str) -> Result:
    return await door.cordon(cluster, cordoned=True, source=source)


async def _uncordon(door: Door, _request: Struct, cluster: str, source: str) -> Result:
    return await door.cordon(cluster, cordoned=False, source=source)


def _command(path: str, summary: str, request: type[Struct], run: Run) -> Command:
    return Command(path=path, summary=summary, request=request, run=run)


COMMANDS: Final[tuple[Command, ...]] = (
    _command("/scale", "Set the number of replicas of a workload.", ScaleRequest, _scale),
    _command("/patch", "Apply a JSON merge patch to an object.", PatchRequest, _patch),
    _command("/label", "Set labels of an object.", LabelRequest, _label),
    _command("/clusters/{name}/label", "Set labels of a cluster.", ClusterLabelRequest, _label_cluster),
    _command("/clusters/{name}/taint", "Set and take away taints of a cluster.", TaintRequest, _taint),
    _command("/clusters/{name}/untaint", "Take away taints of a cluster.", UntaintRequest, _untaint),
    _command("/clusters/{name}/cordon", "Let nothing new onto a cluster.", NothingRequest, _cordon),
    _command("/clusters/{name}/uncordon", "Let a cluster be chosen again.", NothingRequest, _uncordon),
)
"""All under ``/api/v1``, all POST."""


class ContentQuery(Struct, frozen=True, kw_only=True, rename="camel"):
    """The query of ``apply`` and ``delete``, whose body is YAML or JSON as people write it.

    ``kind`` and ``name`` name one object to delete instead of a body; ``force`` lets a cluster that is so named leave
    at once, whatever is left there.
    """

    file: str = ""
    namespace: str = "default"
    validate: wishes.Validation = "strict"
    dry_run: bool = False
    kind: str = ""
    name: str = ""
    force: bool = False


async def apply(door: Door, query: ContentQuery, content: bytes, source: str) -> list[Result]:
    """Applies what is sent."""
    return await door.apply(
        content,
        file=query.file,
        namespace=query.namespace,
        validation=query.validate,
        dry_run=query.dry_run,
        source=source,
    )


async def delete(door: Door, query: ContentQuery, content: bytes, source: str) -> list[Result]:
    """Deletes what is named by the query, or by what is sent."""
    if not query.kind:
        return await door.delete_content(
            content, file=query.file, namespace=query.namespace, dry_run=query.dry_run, source=source
        )
    target = await door.target(query.kind, query.namespace, query.name)
    if isinstance(target, Result):
        return [target]
    return [await door.delete(target, force=query.force, dry_run=query.dry_run, source=source)]


def read_query(fields: dict[str, str]) -> ContentQuery:
    """The query of ``apply`` or ``delete``; raises msgspec.ValidationError for values that it can't have."""
    query = msgspec.convert(fields, ContentQuery, strict=False)
    if bool(query.kind) != bool(query.name):
        raise msgspec.ValidationError("kind and name go together")
    if query.force and not query.kind:
        raise msgspec.ValidationError("force needs the name of a cluster")
    return query


def read_request(command: Command, body: bytes) -> Struct:
    """The body of a command; raises msgspec.MsgspecError (or RecursionError) for what is none."""
    return msgspec.json.decode(body or b"{}", type=command.request)
