"""Registration of simulated members: the address of each member's API in its Cluster, and Secrets for access.

The server that simulates the members writes both when it starts, so that all replicas show them. A Secret is stored
without its token: ``derived_fields`` signs one on each read, valid for that member's API only.
"""

import base64
from collections.abc import Iterable
from typing import Final

import anyio
from msgspec import Struct

from engine import diagnostics
from engine.http.kube.derived_fields import MEMBER, MEMBER_UID, MEMBERS_NAMESPACE
from engine.identity import kubeconfig
from engine.kubeapi.errors import status_objects
from engine.kubeapi.errors.status_objects import StatusError
from engine.log.port import LogError
from engine.writing.mutations import Edited, Target
from engine.writing.object_changes import Change
from engine.writing.read_side import ReadSide
from engine.writing.write_api import ProjectedObjects, WriteApi, cluster_target
from events.json_values import Json
from events.kube_objects import KubeObject
from projections.clusters import Cluster
from projections.port import ProjectionError

_JOIN_SECONDS: Final = 60.0
_log: Final = diagnostics.logger("gateway.kube")
_SUFFIXES: Final = {"secretRef": "", "impersonatorSecretRef": "-impersonator"}


async def connect(
    reads: ReadSide, write_api: WriteApi, names: Iterable[str], url: str, authority: bytes
) -> None:
    """Write the API address and the Secrets of each member once it has joined; ``url`` is that of this server.

    Waits up to a minute for each member. Failures are logged, not raised.
    """
    stored = ProjectedObjects(reads.views)
    for name in names:
        try:
            with anyio.fail_after(_JOIN_SECONDS):
                after = 0
                while (cluster := await stored.cluster(name)) is None:
                    if not await reads.is_more(after):
                        return
                    after = reads.views.folded
            await _register(write_api, cluster, url + kubeconfig.PROXY.format(name), authority)
        except TimeoutError:
            _log.info("member endpoint not registered: cluster has not joined", cluster=name)
        except (StatusError, LogError, ProjectionError) as error:
            _log.warning("member endpoint registration failed", cluster=name, error=str(error))


async def _register(write_api: WriteApi, cluster: Cluster, endpoint: str, authority: bytes) -> None:
    references: Json = {}
    for field, suffix in _SUFFIXES.items():
        secret = _secret(cluster, cluster.name + suffix, authority)
        target = Target(api_version="v1", kind="Secret", namespace=MEMBERS_NAMESPACE, name=secret.name)
        await write_api.change_known(Change(target=target, edit=_Whole(secret)))
        references[field] = {"namespace": MEMBERS_NAMESPACE, "name": cluster.name + suffix}

    edit = _EndpointEdit(cluster.name, {"apiEndpoint": endpoint, **references})
    await write_api.change_known(Change(target=cluster_target(cluster.name), edit=edit))


class _EndpointEdit(Struct, frozen=True):
    """Set fields of a Cluster's spec."""

    cluster: str
    fields: Json

    def apply(self, live: KubeObject | None) -> Edited:
        if live is None:
            raise status_objects.unavailable(f"cluster {self.cluster} was removed")
        return Edited(live.with_fields({"spec": {**live.object_at("spec"), **self.fields}}))


class _Whole(Struct, frozen=True):
    """Create the object, or replace it whatever its current content is."""

    value: KubeObject

    def apply(self, live: KubeObject | None) -> Edited:  # noqa: ARG002  # replaces any content
        return Edited(self.value)


def _secret(cluster: Cluster, name: str, authority: bytes) -> KubeObject:
    marks = {MEMBER: cluster.name, MEMBER_UID: cluster.head.uid}
    return KubeObject(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": name, "namespace": MEMBERS_NAMESPACE, "annotations": marks},
            "type": "Opaque",
            "data": {"caBundle": base64.b64encode(authority).decode()},
        }
    )
