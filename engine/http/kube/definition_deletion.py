"""Deletion of the objects of a custom kind, before the definition of the kind is deleted, as in Kubernetes.

Without the definition no client could read or delete the objects, but clusters would still run them. In Kubernetes the
definition stays and is terminating while objects exist; here its deletion is refused, and can be repeated.
"""

import asyncio
from typing import Final

from engine.http.kube import requests
from engine.http.kube.control_plane import ControlPlane
from engine.kubeapi.errors import status_objects
from engine.kubeapi.errors.status_objects import StatusError
from engine.kubeapi.schema.resources import Resource
from engine.writing.mutations import Action, Problem, Target, Verdict
from engine.writing.object_changes import Removal
from engine.writing.write_api import CLIENT_SOURCE, WritePath

_TOGETHER: Final = 256


async def delete_objects(
    definition: Resource, removal: Removal, plane: ControlPlane, write_api: WritePath
) -> None:
    """Delete all objects of the kind whose definition ``removal`` deletes.

    Do nothing if ``removal`` would be refused. Raises StatusError: 409 if objects remain, 403 if one is protected.
    """
    name, now_ms = removal.target.name, removal.now_ms
    if await write_api.check(removal) is not None:
        return
    remaining = 0
    for kind in (await plane.catalogue()).resources:
        # A definition with the name of a built-in kind has no effect, so it has no objects.
        if kind.custom and kind.qualified == name:
            remaining += await _delete_all(kind, plane, write_api, now_ms)
    if remaining:
        raise delayed(definition, name, remaining)


def delayed(definition: Resource, name: str, remaining: int) -> StatusError:
    """Return the refusal (409) of the deletion of a definition whose kind has objects with finalizers."""
    why = f"objects of its kind still exist ({remaining}); remove their finalizers, then delete it again"
    return status_objects.conflict(definition, name, why)


async def _delete_all(kind: Resource, plane: ControlPlane, write_api: WritePath, now_ms: int) -> int:
    """Delete all objects of a kind; return the number of those that remain."""
    every = requests.ObjectFilter(kind, requests.Query())
    remaining, after = 0, ""
    while True:
        page = await plane.listed(kind, "", every, limit=_TOGETHER, after=after, brief=True)
        targets = [
            Target(api_version=kind.api_version, kind=kind.kind, namespace=namespace, name=name)
            for namespace, name in (value.key for value in page.items)
        ]
        deleted = await asyncio.gather(*(_is_deleted(target, write_api, now_ms) for target in targets))
        remaining += deleted.count(False)
        if not (after := page.after):
            return remaining


async def _is_deleted(target: Target, write_api: WritePath, now_ms: int) -> bool:
    answer = await write_api.change(Removal(target=target, now_ms=now_ms), source=CLIENT_SOURCE)
    if isinstance(answer, Problem):
        return answer.verdict == Verdict.NOT_FOUND
    return answer.mutated.action == Action.DELETED
