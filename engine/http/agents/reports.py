"""Convert an agent's reports into events about its cluster.

The events of a repeated request have the same ids as before, so they take effect only once.
"""

from typing import Final

from msgspec import Struct, structs

from engine.agent import messages
from engine.http.errors import RefusalError
from engine.kubeapi.errors import status_objects
from engine.kubeapi.errors.status_objects import StatusError
from engine.writing.execution import Report
from engine.writing.mutations import Edited, Problem
from engine.writing.object_changes import StatusChange
from engine.writing.write_api import WriteApi, cluster_target
from events import clusters, health, shapes
from events.kube_objects import KubeObject
from events.validation import event_fields
from projections.documents.clusters import enablements

SOURCE: Final = "/reballast/agents/"
"""Prefix of the envelope source of all agents' events; the cluster's name follows."""


class Reporting:
    """Append agents' reports to the log."""

    def __init__(self, api: WriteApi) -> None:
        self._write_api = api

    async def report(self, cluster: str, message: messages.Reports, *, is_member: bool) -> None:
        """Append the reports of one request; unless ``is_member``, ignore all reports that are not about workloads.

        Raises RefusalError if a report is invalid, and then appends no report. Raises LogError if the log fails.
        """
        events: list[Report] = []
        served: list[messages.ApisReport] = []
        for index, report in enumerate(message.reports):
            if not is_member and not isinstance(report, messages.WorkloadReport | messages.GoneReport):
                continue
            if isinstance(report, messages.ApisReport):
                served.append(report)
                continue
            key, event = _event(cluster, report)
            for fault in event_fields.cluster_event_faults(event):
                raise RefusalError(422, f"reports[{index}].{fault.field}", fault.reason, fault.remedy)
            events.append(Report(key, event, f"{message.id}-{index}"))
        for report in served:
            await self._serve(cluster, report)
        await self._write_api.report(events, SOURCE + cluster)

    async def _serve(self, cluster: str, report: messages.ApisReport) -> None:
        """Write the cluster's API kinds and Kubernetes version to the status of its Cluster object, if they changed."""
        change = StatusChange(target=cluster_target(cluster), edit=_ServedEdit(cluster, report))
        try:
            answer = await self._write_api.change(change, source=SOURCE + cluster)
        except StatusError as error:
            raise RefusalError(422, "apis", str(error), "see /openapi.json") from None
        if isinstance(answer, Problem):
            # After a 503 the agent sends the request again; it is harmless to write the same status twice.
            raise RefusalError(503, "apis", answer.reason, "try again")


class _ServedEdit(Struct, frozen=True):
    """Set ``apiEnablements`` and ``kubernetesVersion`` in a Cluster's status."""

    cluster: str
    report: messages.ApisReport

    def apply(self, live: KubeObject | None) -> Edited:
        if live is None:
            raise status_objects.unavailable(f"cluster {self.cluster} was removed")
        status = live.object_at("status")
        apis = enablements(self.report.apis)
        version = self.report.kubernetes_version or status.get("kubernetesVersion", "")
        return Edited(
            live.with_fields({"status": {**status, "apiEnablements": apis, "kubernetesVersion": version}})
        )


def _event(
    cluster: str,
    report: messages.WorkloadReport | messages.GoneReport | messages.CapacityReport | messages.HealthReport,
) -> tuple[str, shapes.Event]:
    """Return the record key and the event of a report; the event copies the fields of the report by name."""
    fields = structs.asdict(report)
    match report:
        case messages.WorkloadReport():
            return report.key, health.WorkloadReported(cluster=cluster, **fields)
        case messages.GoneReport():
            return report.key, health.WorkloadGone(cluster=cluster, **fields)
        case messages.CapacityReport():
            return cluster, clusters.CapacityReported(name=cluster, **fields)
        case messages.HealthReport():
            return cluster, clusters.ClusterHealthChanged(name=cluster, **fields)
