"""Convert agents' reports into events about their own cluster; event ids make repeated requests idempotent."""

from typing import Final

from engine.agent import messages
from engine.http.errors import RefusalError
from engine.kubeapi.errors import status_objects
from engine.kubeapi.errors.status_objects import StatusError
from engine.kubeapi.schema.schemas import Json, as_object
from engine.writing.appending import Report
from engine.writing.object_changes import StatusChange
from engine.writing.write_api import WriteApi, cluster_target
from events import clusters, health, shapes
from events.validation import clusters as validation_clusters

SOURCE: Final = "/reballast/agents/"
"""Prefix of the envelope source of all agents' events; the cluster's name follows."""


class Reporting:
    """Append agents' reports to the log."""

    def __init__(self, door: WriteApi) -> None:
        self._write_api = door

    async def report(self, cluster: str, said: messages.Reports, *, is_member: bool) -> None:
        """Append the reports of one request; for a cluster that is not a member, only those on workloads.

        Raises RefusalError if any report is invalid, and then appends none; raises LogError.
        """
        found: list[Report] = []
        for place, each in enumerate(said.reports):
            if not is_member and not isinstance(each, messages.WorkloadReport | messages.GoneReport):
                continue
            if isinstance(each, messages.ApisReport):
                await self._serve(cluster, each)
                continue
            key, event = _event(cluster, each)
            for fault in validation_clusters.examine(event):
                raise RefusalError(422, f"reports[{place}].{fault.field}", fault.reason, fault.remedy)
            found.append(Report(key, event, f"{said.id}-{place}"))
        await self._write_api.report(found, SOURCE + cluster)

    async def _serve(self, cluster: str, said: messages.ApisReport) -> None:
        """Write the cluster's API kinds and release to the status of its Cluster object, if they changed."""

        def served(live: Json | None) -> Json:
            if live is None:
                raise status_objects.unavailable(f"cluster {cluster} has left")
            status = as_object(live.get("status")) or {}
            apis = [
                {"groupVersion": api.group_version, "resources": [{"kind": kind} for kind in api.kinds]}
                for api in said.apis
            ]
            version = said.kubernetes_version or status.get("kubernetesVersion", "")
            return {**live, "status": {**status, "apiEnablements": apis, "kubernetesVersion": version}}

        change = StatusChange(target=cluster_target(cluster), compute=served)
        try:
            await self._write_api.change(change, dry_run=False, source=SOURCE + cluster)
        except StatusError as error:
            raise RefusalError(422, "apis", str(error), "see /openapi.json") from None


def _event(
    cluster: str,
    said: messages.WorkloadReport | messages.GoneReport | messages.CapacityReport | messages.HealthReport,
) -> tuple[str, shapes.Event]:
    """The event of a report, and its record key."""
    match said:
        case messages.WorkloadReport():
            return said.key, health.WorkloadReported(
                cluster=cluster,
                key=said.key,
                term=said.term,
                step=said.step,
                replicas=said.replicas,
                updated=said.updated,
                ready=said.ready,
                available=said.available,
                healthy=said.healthy,
                fault=said.fault,
                values=said.values,
            )
        case messages.GoneReport():
            return said.key, health.WorkloadGone(
                cluster=cluster, key=said.key, term=said.term, step=said.step
            )
        case messages.CapacityReport():
            return cluster, clusters.CapacityReported(
                name=cluster,
                allocatable=said.allocatable,
                allocated=said.allocated,
                allocating=said.allocating,
                modelings=said.modelings,
                nodes=said.nodes,
                nodes_ready=said.nodes_ready,
            )
        case messages.HealthReport():
            return cluster, clusters.ClusterHealthChanged(
                name=cluster,
                ready=said.ready,
                reason=said.reason,
                message=said.message,
                grace_seconds=said.grace_seconds,
            )
