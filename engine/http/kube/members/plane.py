"""The objects of a simulated member: propagated by the control plane, or written by clients of the member."""

import asyncio
import itertools
from collections.abc import Callable, Iterable
from http import HTTPStatus
from typing import Final

from engine import loop_share
from engine.bounded_caches import BoundedCache
from engine.domain import marks, namespaces, replica_fields
from engine.http import member_namespaces
from engine.http.kube import bootstrap_objects
from engine.http.kube.derived_fields import TOKEN_SECRET, DerivedFields
from engine.http.kube.members.snapshots import SnapshotPlane
from engine.kubeapi.admission import built_in_defaults, built_in_shapes
from engine.kubeapi.conversion import versions
from engine.kubeapi.errors import status_objects
from engine.kubeapi.schema import custom_kinds
from engine.kubeapi.schema.resources import ApiPath, Catalogue, Resource, built_in
from engine.kubeapi.values import job_selectors
from engine.simulation import (
    api_objects,
    child_objects,
    faults,
    kubernetes_events,
    nodes,
    rollouts,
    services,
    system_objects,
    usage,
)
from engine.simulation.member_fleet import Members
from engine.simulation.state import MemberState, Workload
from engine.works import manifests, template_loading
from engine.writing.read_side import ReadSide
from engine.writing.write_api import ProjectedObjects
from events import clusters, times
from events.json_values import DECODING_ERRORS
from events.kube_objects import KubeObject
from projections import agent_queries, object_tables
from projections.port import Rows

_MANIFESTS_KEPT: Final = 4_096
_MANIFEST_BYTES_MAX: Final = 64 * 1024 * 1024
_PARTLY_DERIVED: Final = frozenset(
    {
        "configmaps",
        "controllerrevisions.apps",
        "events",
        "events.events.k8s.io",
        "jobs.batch",
        "persistentvolumeclaims",
        "replicasets.apps",
        "serviceaccounts",
    }
)


class MemberPlane(SnapshotPlane):
    """The objects of one member."""

    def __init__(
        self,
        members: Members,
        name: str,
        reads: ReadSide,
        clock_ms: Callable[[], int],
        derived_fields: DerivedFields,
    ) -> None:
        super().__init__(began_ms=clock_ms())
        self._derived_fields = derived_fields
        self._members = members
        self._clock_ms = clock_ms
        self.name = name
        self._requests = 0
        self._reads = reads
        self._defined: tuple[tuple[Resource, ...], ...] = ()
        self._catalogue = built_in()
        self._manifests: BoundedCache[tuple[int, int], bytes] = BoundedCache(
            _MANIFEST_BYTES_MAX, len, _MANIFESTS_KEPT
        )
        self._share = loop_share.LoopShare()
        self._maker = manifests.Renderer(reads.log)

    async def catalogue(self) -> Catalogue:
        """The kinds that every cluster serves, and those of the member's own CustomResourceDefinitions."""
        definitions = tuple(self.state().definitions.values())
        if len(definitions) != len(self._defined) or any(
            new is not old for new, old in zip(definitions, self._defined, strict=True)
        ):
            self._defined = definitions
            self._catalogue = built_in().with_custom(kind for served in definitions for kind in served)
        return self._catalogue

    async def resource(self, api_path: ApiPath) -> Resource | None:
        """The kind that a path names; None if it is unknown."""
        return (await self.catalogue()).resource(api_path.group, api_path.version, api_path.plural)

    async def _objects(self, resource: Resource) -> Iterable[KubeObject]:
        began_ms = await self._began_ms()
        of_system = system_objects.of_kind(self.state(), resource.qualified, began_ms)
        # Built-in objects come first, so that written or propagated objects of the same name replace them.
        shown = [self.rendered(resource, value) for value in of_system]
        return [*shown, *await self._own_objects(resource, began_ms)]

    async def _own_objects(self, resource: Resource, began_ms: int) -> Iterable[KubeObject]:
        state = self.state()
        match resource.qualified:
            case "nodes":
                return nodes.objects(state, began_ms)
            case "namespaces":
                written = await self._workloads(state, resource)
                propagated = await self._reads.peek(lambda rows: member_namespaces.of(rows, self.name))
                return api_objects.namespaces(state, began_ms, written, propagated)
            case "pods":
                return await self._all_pods(state)
            case "services" | "endpoints" | "endpointslices.discovery.k8s.io":
                return await self._services_or_addresses(state, resource)
            case kind if kind in _PARTLY_DERIVED:
                # A written object replaces a derived object of the same name.
                return [*await self._derived(state, resource), *await self._workloads(state, resource)]
            case "nodes.metrics.k8s.io":
                return usage.node_usage(state, self._clock_ms())
            case "pods.metrics.k8s.io":
                return await self._pod_figures(state)
            case _:
                return await self._workloads(state, resource)

    async def built_in(self, resource: Resource) -> list[KubeObject]:
        """The objects of a kind that every namespace of the member contains when it is created."""
        kind, authority = (
            object_tables.Kind(resource.api_version, resource.kind),
            self._derived_fields.authority,
        )
        return [
            bootstrap_objects.object_of_namespace(kind, namespace, authority.decode())
            for namespace in await self._objects(self._core_kind("namespaces"))
            if authority or kind != bootstrap_objects.CONFIG_MAP
        ]

    async def _began_ms(self) -> int:
        """When the member joined, in milliseconds since 1970; nodes and built-in namespaces were created then."""
        cluster = await ProjectedObjects(self._reads.views).cluster(self.name)
        return 0 if cluster is None else cluster.head.created_ms

    async def _workloads(self, state: MemberState, resource: Resource) -> list[KubeObject]:
        kept = versions.stored(resource)
        workloads = [
            workload
            for workload in list(state.workloads.values())
            if (workload.ref.api_version, workload.ref.kind) == (kept.api_version, kept.kind)
            and not workload.is_unmanaged
        ]
        mark_values = await self._mark_values(workloads)
        values = [
            api_objects.workload_object(
                state, workload, await self._manifest(workload), mark_values.get(workload.key)
            )
            for workload in workloads
        ]
        values += [
            api_objects.unmanaged_object(state, key, item)
            for key, item in list(state.unmanaged.items())
            if (item.ref.api_version, item.ref.kind) == (kept.api_version, kept.kind)
        ]
        return [self.rendered(resource, value) for value in values]

    def rendered(self, resource: Resource, value: KubeObject) -> KubeObject:
        """Return an object with the fields that the member's API server and controllers add to it."""
        if resource.qualified == "secrets" and value.at("type") == TOKEN_SECRET:
            value = self._derived_fields.with_token(value, self.name)
        elif resource.qualified == custom_kinds.DEFINITIONS:
            # Set defaults first: the status repeats the names of the spec, including names set by default.
            value = custom_kinds.established(built_in_defaults.with_defaults(value))
        elif resource.qualified == "persistentvolumeclaims":
            value = child_objects.bound_claim(value)
        elif resource.qualified == "namespaces":
            value = namespaces.shown(value)
        value = built_in_shapes.shown(job_selectors.shown(value))
        if resource.qualified == "services":
            value = services.with_addresses(self.name, value)
        return versions.to_served(resource, value)

    async def _all_pods(self, state: MemberState) -> list[KubeObject]:
        return [*await self._workloads(state, self._core_kind("pods")), *await self._pods(state)]

    async def _services_or_addresses(self, state: MemberState, resource: Resource) -> list[KubeObject]:
        shown = await self._workloads(state, self._core_kind("services"))
        if resource.qualified == "services":
            return shown
        derived = services.endpoint_slices(self.name, shown, await self._all_pods(state))
        if resource.qualified == "endpoints":
            derived = services.endpoints(self.name, derived)
        return [*await self._workloads(state, resource), *derived]

    def _core_kind(self, plural: str) -> Resource:
        resource = self._catalogue.resource("", "v1", plural)
        if resource is None:
            raise LookupError(f"Kubernetes' own kind {plural} is missing in the catalogue")
        return resource

    async def _mark_values(self, workloads: list[Workload]) -> dict[str, marks.MarkValues]:
        """Return, by workload key, the data from which ``domain.marks`` derives a workload's labels and annotations.

        These are the labels and annotations that the control plane sets. Workloads that the control plane has
        released are left out.
        """
        versions_run = {workload.key: workload.known for workload in workloads if not workload.preserved}

        def query(rows: Rows) -> dict[str, agent_queries.Placed]:
            result = {key: agent_queries.placed(rows, self.name, key) for key in versions_run}
            return {key: placed for key, placed in result.items() if placed is not None}

        placed = await self._reads.peek(query)
        # If the member runs a version of a work that the views do not have yet, wait for the views.
        if any(key not in placed or placed[key].version < known for key, known in versions_run.items()):
            placed = await self._reads.read(query)
        return {key: result.mark_values for key, result in placed.items()}

    async def _derived(self, state: MemberState, resource: Resource) -> Iterable[KubeObject]:
        """Return the objects of a kind that controllers of the member create."""
        match resource.kind:
            case "Job":
                return await self._started_jobs(state)
            case "ReplicaSet":
                return await self._replica_sets(state)
            case "ControllerRevision":
                return await self._controller_revisions(state)
            case "ServiceAccount" | "ConfigMap":
                return await self.built_in(resource)
            case "PersistentVolumeClaim":
                return await self._claims(state, resource)
            case _:
                newest = await self._newest_pods(state)
                return [
                    versions.to_served(resource, event)
                    for event in (
                        *kubernetes_events.of_refused_pods(state),
                        *kubernetes_events.of_pods(self.name, newest),
                    )
                ]

    async def _claims(self, state: MemberState, resource: Resource) -> list[KubeObject]:
        return [
            self.rendered(resource, value)
            for workload in list(state.workloads.values())
            if workload.ref.kind == "StatefulSet"
            for value in child_objects.claims(state, workload, await self._manifest(workload))
        ]

    async def _replica_sets(self, state: MemberState) -> list[KubeObject]:
        # Set defaults: kubectl finds the current ReplicaSet by comparing its template with the Deployment's.
        return [
            built_in_defaults.with_defaults(value)
            for workload in list(state.workloads.values())
            if workload.ref.kind == "Deployment" and workload.replicas is not None
            for value in child_objects.sets(state, await self._groups(workload))
        ]

    async def _controller_revisions(self, state: MemberState) -> list[KubeObject]:
        return [
            value
            for workload in list(state.workloads.values())
            if workload.ref.kind in ("StatefulSet", "DaemonSet") and workload.replicas is not None
            for value in child_objects.controller_revisions(state, workload, await self._manifest(workload))
        ]

    async def _started_jobs(self, state: MemberState) -> list[KubeObject]:
        """Return the Jobs that CronJobs have started."""
        jobs: list[KubeObject] = []
        for workload in list(state.workloads.values()):
            if workload.template.cron is not None:
                jobs.extend(child_objects.started_jobs(state, workload, await self._manifest(workload)))
        return [built_in_defaults.with_defaults(job_selectors.shown(job)) for job in jobs]

    async def _pod_figures(self, state: MemberState) -> list[KubeObject]:
        figures: list[KubeObject] = []
        for workload in list(state.workloads.values()):
            if workload.replicas is not None:
                figures.extend(
                    usage.pod_usage(state, workload, await self._manifest(workload), self._clock_ms())
                )
        for pod in await self._workloads(state, self._core_kind("pods")):
            figures.extend(usage.single_pod_usage(state, pod, self._clock_ms()))
        return figures

    async def _pods(self, state: MemberState) -> list[KubeObject]:
        pods: list[KubeObject] = []
        for workload in list(state.workloads.values()):
            if workload.replicas is not None:
                for group, manifest in await self._groups(workload):
                    for pod in api_objects.pods(state, group, manifest):
                        pods.append(pod)
                        await self._share.pause()
        return pods

    async def _newest_pods(self, state: MemberState) -> list[KubeObject]:
        """Return the pods that were created recently enough for their Events to be shown, at most ``PODS_MAX``."""
        since_ms = self._clock_ms() - kubernetes_events.SHOWN_MS
        pods: list[KubeObject] = []
        for workload in list(state.workloads.values()):
            is_young = any(cohort.created_ms > since_ms for cohort in workload.cohorts) or workload.pending
            if workload.replicas is None or not is_young or len(pods) >= kubernetes_events.PODS_MAX:
                continue
            groups = await self._groups(workload)
            pods_of_workload = [pod for group in groups for pod in api_objects.pods(state, *group)]
            since = times.to_seconds_text(since_ms)
            young = (pod for pod in pods_of_workload if pod.text_at("metadata", "creationTimestamp") > since)
            pods.extend(itertools.islice(young, kubernetes_events.PODS_MAX - len(pods)))
        return pods

    async def _groups(self, workload: Workload) -> list[child_objects.Group]:
        """The replicas of a workload by pod template, with their manifests."""
        return [(group, await self._manifest(group)) for group in rollouts.groups(workload)]

    async def _manifest(self, workload: Workload) -> KubeObject:
        """The manifest with the pod template that these replicas run, possibly an earlier template during a rollout."""
        # Pause here: every list of objects calls this method once for each workload.
        await self._share.pause()
        try:
            if workload.is_unmanaged:
                return child_objects.written_manifest(self.state(), workload)
            return KubeObject.from_json(await self._propagated_manifest(workload))
        except DECODING_ERRORS:
            return KubeObject({})

    async def _propagated_manifest(self, workload: Workload) -> bytes:
        source = workload.source
        if source.overrides or source.labels:
            render_input = manifests.RenderInput(
                source.shard,
                source.offset,
                workload.replicas,
                source.overrides,
                source.labels,
                replica_fields.declared_path(source.reading),
                workload.completions,
            )
            return (await self._maker.render(render_input)).manifest
        position = (source.shard, source.offset)
        manifest = self._manifests.get(position)
        if manifest is None:
            manifest = await template_loading.manifest_at(self._reads.log, position)
            if manifest is not None:
                self._manifests.put(position, manifest)
        return manifest or b"{}"

    def is_joined(self) -> bool:
        """Whether the member has joined the control plane."""
        return self._members.state_of(self.name).joined

    async def write(self, *data: clusters.MemberWrite) -> None:
        """Record and carry out a client's writes in the member; raises LookupError if it is unknown, and LogError."""
        await self._members.write(self.name, *data)

    async def apply_faults(self) -> None:
        """Delay or refuse a request to the member according to its faults; raises StatusError."""
        own = self._members.state_of(self.name).faults
        self._requests += 1
        if own.lag_ms:
            await asyncio.sleep(own.lag_ms / 1000)
        match faults.refusal(own, self._requests):
            case HTTPStatus.TOO_MANY_REQUESTS:
                raise status_objects.too_many_requests(
                    1, f"cluster {self.name} throttles requests because of an injected fault"
                )
            case HTTPStatus.SERVICE_UNAVAILABLE:
                raise status_objects.unavailable(
                    f"cluster {self.name} fails requests because of an injected fault"
                )
            case _:
                pass

    def state(self) -> MemberState:
        """The member's state; raises StatusError (503) if the member does not respond."""
        try:
            state = self._members.state_of(self.name)
        except LookupError as error:
            raise status_objects.unavailable(str(error)) from None
        if state.faults.down:
            raise status_objects.unavailable(f"cluster {self.name} does not answer")
        return state
