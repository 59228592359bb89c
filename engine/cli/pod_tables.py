"""Tables of pods and works."""

from msgspec import UNSET, Struct

from engine.cli import failures, output, server_reads, table_rows
from engine.cli.client import Client
from engine.cli.table_rows import Listing
from engine.simulation.listed_statuses import Pod
from events.kube_objects import KubeObject
from projections.documents.clusters import ShownWork


class _Pods(Struct):
    items: list[Pod]
    truncated: bool = False


def pods(client: Client, name: str, *, namespace: str, labels: str) -> list[Pod]:
    """The pods of all members; raises Failure if a named one does not exist, or no members are simulated."""
    answer = client.find("members/pods", _Pods, namespace=namespace, labelSelector=labels)
    if answer is None:
        raise failures.Failure("no members are simulated here, so there are no pods to list")
    if answer.truncated:
        output.warn(f"Only the first {len(answer.items):,} pods were read; choose fewer with -n and -l.")
    matching = [pod for pod in answer.items if name in {"", pod.name}]
    if name and not matching:
        raise failures.Failure(f'pods "{name}" not found')
    return matching


def pod_table(pods: list[Pod], namespace: str, now_ms: int) -> Listing:
    """The table of pods, in karmadactl's columns."""
    columns = ("NAME", "CLUSTER", "READY", "STATUS", "RESTARTS", "AGE")
    rows: list[table_rows.Row] = [
        (
            pod.name,
            pod.cluster,
            "1/1" if pod.ready else "0/1",
            pod.phase,
            pod.restarts,
            table_rows.age_text(pod.created_ms, now_ms),
            table_rows.label_text(pod.labels),
        )
        for pod in pods
    ]
    if not namespace:
        columns = ("NAMESPACE", *columns)
        rows = [(pod.namespace, *row) for pod, row in zip(pods, rows, strict=True)]
    return Listing(columns, ("LABELS",), rows)


def works(client: Client, name: str, *, namespace: str, as_of: str) -> list[ShownWork]:
    """The works of the bindings in a namespace, with a name; raises Failure if there is none of that name.

    An empty namespace means all; works of cluster-scoped objects are in every namespace.
    """
    works = list(server_reads.items(client, "works", server_reads.Page[ShownWork], {"asOf": as_of}))
    matching = [
        work
        for work in works
        if name in {"", work.name, work.binding}
        and (not namespace or work.resource.namespace in {"", namespace})
    ]
    if name and not matching:
        raise failures.Failure(f'works "{name}" not found')
    return matching


def work_table(works: list[ShownWork]) -> Listing:
    rows: list[table_rows.Row] = [
        (
            work.name,
            work.cluster,
            work.binding,
            work.resource.kind,
            "-" if work.replicas is UNSET else work.replicas,
            "Y" if work.suspended else "N",
            f"{work.version.term}.{work.version.step}",
            work.resource_version,
        )
        for work in works
    ]
    columns = ("NAME", "CLUSTER", "BINDING", "KIND", "REPLICAS", "SUSPENDED")
    return Listing(columns, ("VERSION", "NUMBER"), rows)


def pod(pod: Pod) -> KubeObject:
    """A member's pod as a Kubernetes object with its metadata and phase."""
    metadata = {
        "name": pod.name,
        "namespace": pod.namespace,
        "labels": pod.labels,
        "annotations": {"resource.karmada.io/cached-from-cluster": pod.cluster},
    }
    return KubeObject(
        {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "status": {"phase": pod.phase}}
    )
