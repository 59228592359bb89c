"""A control plane of the comparison: registers the clusters, renews their Leases, and sends the writes of scenarios."""

import datetime as dt
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

import anyio
import httpx

from engine.agent import kubeconfigs
from engine.domain import namespaces
from events.json_values import Json, object_at
from events.vocabulary import EXECUTION_NAMESPACE_PREFIX
from tests.clusters.comparison import custom_kinds, fleet, fleet_changes, policies, templates
from tests.clusters.comparison.fleet_changes import FleetChange, Membership
from tests.clusters.comparison.scenarios import Write

_TIMEOUT_S: Final = 30.0
_RENEWED_S: Final = 8.0
_RELEASED_S: Final = 60.0
_RETRIED_S: Final = 1.0
_ATTEMPTS: Final = 10
_CONFLICT: Final = 409
_NOT_FOUND: Final = 404
_WORKS: Final = "/apis/work.karmada.io/v1alpha1/works"
_LEASES: Final = f"/apis/coordination.k8s.io/v1/namespaces/{fleet.LEASES}/leases"
_BACKGROUND: Final = {"propagationPolicy": "Background"}
"""The default for Jobs of this API version is to orphan their pods; kubectl deletes in the background."""
_MERGE: Final = {"content-type": "application/merge-patch+json"}
_RELEASED: Final = {"metadata": {"finalizers": None}}
_APPLY: Final = {"content-type": "application/apply-patch+yaml"}
_APPLIED: Final = {"fieldManager": "comparison", "force": "true"}
_EDITED: Final = (
    "replicas",
    "template",
    "overall",
    "staticAssignments",
    "placement",
    "overrideRules",
    "workloads",
    "resourceSelectors",
)
"""Fields of specs that scenarios edit but never remove."""

_KARMADA: Final = ".karmada.io/"
"""In the names of annotations that the control plane sets."""


class Plane:
    """An API that serves Karmada's kinds."""

    def __init__(self, name: str, kubeconfig: Path, context: str = "") -> None:
        access = kubeconfigs.read(kubeconfig, context)
        self.name: Final = name
        self._http: Final = httpx.AsyncClient(
            base_url=access.server,
            verify=kubeconfigs.tls(access),
            headers={"authorization": f"Bearer {access.token}"} if access.token else {},
            timeout=_TIMEOUT_S,
            trust_env=False,
        )
        self._paths: dict[tuple[str, str], tuple[str, bool]] = {}

    async def aclose(self) -> None:
        await self._http.aclose()

    async def items(self, path: str) -> list[dict[str, Any]]:
        """Return the objects of a list."""
        answer = await self._http.get(path)
        # An API server gives this answer until it has read all objects of a kind that is new to it.
        while answer.status_code == HTTPStatus.TOO_MANY_REQUESTS:
            await anyio.sleep(_RETRIED_S)
            answer = await self._http.get(path)
        answer.raise_for_status()
        return answer.json()["items"]

    async def works(self) -> list[dict[str, Any]]:
        """Return the Works with content that are not being deleted."""
        return [
            work
            for work in await self.items(_WORKS)
            if work["spec"]["workload"].get("manifests") and "deletionTimestamp" not in work["metadata"]
        ]

    async def release_works(self) -> None:
        """Release deleted Works, as the agents of a Karmada do, until cancelled."""
        while True:
            for work in await self.items(_WORKS):
                if "deletionTimestamp" in work["metadata"]:
                    url = f"{await self._path_of(work)}/{work['metadata']['name']}"
                    await self._http.patch(url, json=_RELEASED, headers=_MERGE)
            await anyio.sleep(_RETRIED_S)

    async def join(self) -> None:
        """Register the clusters, with their statuses."""
        await self.add_namespace(fleet.LEASES)
        for cluster in fleet.FLEET:
            await self._join(cluster)

    async def _join(self, cluster: fleet.Cluster) -> None:
        (await self._http.post(fleet.CLUSTERS, json=cluster.manifest())).raise_for_status()
        url = f"{fleet.CLUSTERS}/{cluster.name}/status"
        status = {"status": cluster.status()}
        (await self._http.patch(url, json=status, headers=_MERGE)).raise_for_status()

    async def _end_departure(self, name: str) -> None:
        """Wait until a leaving cluster is gone; release it, as the agent in it would."""
        url = f"{fleet.CLUSTERS}/{name}"
        space = f"/api/v1/namespaces/{EXECUTION_NAMESPACE_PREFIX}{name}"
        with anyio.fail_after(_RELEASED_S):
            while any([(await self._http.get(path)).is_success for path in (space, url)]):
                await self._http.patch(url, json=_RELEASED, headers=_MERGE)
                await anyio.sleep(_RETRIED_S)

    async def prepare(self) -> None:
        """Create the definitions of custom kinds, the policies for taints, and the classes of priorities."""
        for value in (*custom_kinds.definitions(), *policies.PRIORITY_CLASSES):
            path = await self._path_of(value)
            (await self._http.post(path, json=value)).raise_for_status()
        for value in fleet_changes.TAINT_POLICIES:
            await self.change_fleet(FleetChange(policy=value))

    async def change_fleet(self, change: FleetChange) -> None:
        """Change a policy for taints, or a cluster and what it reports about itself; or let it leave, or join again."""
        if change.policy is not None:
            await self._apply(change.policy)
            return
        url = f"{fleet.CLUSTERS}/{change.cluster}"
        if change.membership is Membership.LEAVES:
            (await self._http.delete(url)).raise_for_status()
        elif change.membership is Membership.JOINS:
            await self._end_departure(change.cluster)
            await self._join(fleet.of(change.cluster))
            # Karmada tries the new cluster for existing bindings only when its labels or its spec change.
            label = {"metadata": {"labels": {"joined": "again"}}}
            (await self._http.patch(url, json=label, headers=_MERGE)).raise_for_status()
        if change.patch is not None:
            (await self._http.patch(url, json=change.patch, headers=_MERGE)).raise_for_status()
        if change.status is not None:
            status = {"status": change.status}
            answer = await self._http.patch(f"{url}/status", json=status, headers=_MERGE)
            answer.raise_for_status()

    async def _apply(self, value: Json) -> None:
        """Create an object or replace all its fields; delete it if it has no spec."""
        url = f"{await self._path_of(value)}/{object_at(value, 'metadata')['name']}"
        if "spec" in value:
            answer = await self._http.patch(url, json=value, headers=_APPLY, params=_APPLIED)
        else:
            answer = await self._http.delete(url)
        if answer.status_code != _NOT_FOUND:
            answer.raise_for_status()

    async def renew(self) -> None:
        """Renew the clusters' Leases until cancelled, as their agents do."""
        while True:
            now = dt.datetime.now(dt.UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
            for name in fleet.NAMES:
                lease = {
                    "apiVersion": "coordination.k8s.io/v1",
                    "kind": "Lease",
                    "metadata": {"name": name},
                    "spec": {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": now},
                }
                url = f"{_LEASES}/{name}"
                answer = await self._http.patch(url, json=lease, headers=_APPLY, params=_APPLIED)
                answer.raise_for_status()
            await anyio.sleep(_RENEWED_S)

    async def add_namespace(self, name: str) -> None:
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        answer = await self._http.post("/api/v1/namespaces", json=namespace)
        if answer.status_code != _CONFLICT:
            answer.raise_for_status()

    async def write(self, write: Write) -> str:
        """Make a write; return an empty text, or the error if it is refused."""
        path = await self._path_of(write.value)
        url = f"{path}/{object_at(write.value, 'metadata')['name']}"
        match write.verb:
            case "create":
                answer = await self._http.post(path, json=write.value)
            case "delete":
                answer = await self._http.delete(url, params=_BACKGROUND)
            case "recreate":
                # A protected object cannot be deleted.
                answer = await self._http.delete(url, params=_BACKGROUND)
                if answer.is_success:
                    answer = await self._http.post(path, json=write.value)
            case "patch":
                answer = await self._http.patch(url, json=write.value, headers=_MERGE)
                # Only one side has a binding for some templates without a policy.
                if answer.status_code == _NOT_FOUND:
                    return ""
            case _:
                answer = await self._replaced(url, write.value)
        return "" if answer.is_success else f"{answer.status_code} {answer.json().get('message')}"

    async def write_status(self, value: dict[str, Any], status: Json) -> None:
        """Replace fields of an object's status."""
        url = f"{await self._path_of(value)}/{value['metadata']['name']}/status"
        answer = await self._http.patch(url, json={"status": status}, headers=_MERGE)
        # The object may have been deleted since it was read.
        if answer.status_code != _NOT_FOUND:
            answer.raise_for_status()

    async def _replaced(self, url: str, value: Json) -> httpx.Response:
        """Replace the parts that scenarios edit; write again if a controller has written in between."""
        is_policy = policies.is_policy(value)
        for _ in range(_ATTEMPTS):
            answer = await self._http.get(url)
            if not answer.is_success:
                return answer
            live: dict[str, Any] = answer.json()
            own = live["metadata"].get("annotations", {})
            kept = {name: text for name, text in own.items() if _KARMADA in name}
            live["metadata"]["annotations"] = {**kept, **object_at(value, "metadata", "annotations")}
            if not is_policy:
                labels = live["metadata"].setdefault("labels", {})
                drawn = object_at(value, "metadata", "labels")
                for name in (templates.FREE_LABEL, namespaces.SKIPPED):
                    labels.pop(name, None)
                    labels |= {name: drawn[name]} if name in drawn else {}
            # The template of a Job cannot change, and here it lacks the defaults that the live one has.
            if "spec" in live and live["kind"] != "Job":
                spec = object_at(value, "spec")
                removable = policies.OPTIONAL if is_policy else frozenset[str]()
                kept = {name: part for name, part in live["spec"].items() if name not in removable}
                live["spec"] = kept | {name: spec[name] for name in (*_EDITED, *removable) if name in spec}
            answer = await self._http.put(url, json=live)
            if answer.status_code != _CONFLICT:
                return answer
        raise TimeoutError(f"{self.name}: {url} was written by others {_ATTEMPTS} times")

    async def _path_of(self, value: Json) -> str:
        """Return the path of the list that the object is in."""
        kind = (str(value["apiVersion"]), str(value["kind"]))
        if kind not in self._paths:
            prefix = f"/apis/{kind[0]}" if "/" in kind[0] else f"/api/{kind[0]}"
            served = (await self._http.get(prefix)).raise_for_status().json()["resources"]
            for resource in served:
                if "/" not in resource["name"]:
                    path = (f"{prefix}/{{}}{resource['name']}", resource["namespaced"])
                    self._paths[kind[0], resource["kind"]] = path
        path, is_namespaced = self._paths[kind]
        namespace = object_at(value, "metadata").get("namespace")
        return path.format(f"namespaces/{namespace}/" if is_namespaced else "")
