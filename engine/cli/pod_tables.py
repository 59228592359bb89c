"""Tables of pods and works, and output of any table."""

from typing import Final

from msgspec import UNSET, Struct

from engine.cli import failures, output, table_rows
from engine.cli.client import Client
from engine.cli.table_rows import Listing
from engine.simulation.lists import Pod
from events.json_values import Json, as_text, at
from events.kube_objects import KubeObject
from events.validation import known_kinds as kinds
from projections.documents.clusters import ShownWork

PODS: Final = frozenset({"pod", "pods", "po"})
WORKS: Final = frozenset({"work", "works", "wk"})


class _Pods(Struct):
    items: list[Pod]


def pods(client: Client, name: str, *, namespace: str, labels: str) -> list[Pod]:
    """The pods of all members; raises Failure if a named one does not exist, or no members are simulated."""
    answer = client.find("members/pods", _Pods, namespace=namespace, labelSelector=labels)
    if answer is None:
        raise failures.Failure("no members are simulated here, so there are no pods to list")
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
            output.age(now_ms - pod.created_ms),
            table_rows.label_text(pod.labels),
        )
        for pod in pods
    ]
    if not namespace:
        columns = ("NAMESPACE", *columns)
        rows = [(pod.namespace, *row) for pod, row in zip(pods, rows, strict=True)]
    return Listing(columns, ("LABELS",), rows)


def work_table(works: list[ShownWork]) -> Listing:
    rows: list[table_rows.Row] = [
        (
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
    columns = ("CLUSTER", "BINDING", "KIND", "REPLICAS", "SUSPENDED")
    return Listing(columns, ("VERSION", "NUMBER"), rows)


def show_table(table: Listing, *, wide: bool) -> None:
    """Print a table, with its wide columns if requested; prints a note if it is empty."""
    if not table.rows:
        output.warn("No resources found.")
        return
    columns = (*table.columns, *table.wide) if wide else table.columns
    output.table(columns, [row[: len(columns)] for row in table.rows])


def show_whole(documents: list[Json], *, form: str, single: bool) -> None:
    """Print whole objects: a single one as it is, several as a List."""
    if form == "name":
        for document in documents:
            known = kinds.known(str(document.get("apiVersion")), str(document.get("kind")))
            resource = known.resource if known else str(document.get("kind")).lower()
            output.print_line(output.clean(f"{resource}/{as_text(at(document, 'metadata', 'name'))}"))
        return
    value = documents[0] if single else {"apiVersion": "v1", "kind": "List", "items": documents}
    (output.json if form == "json" else output.yaml)(value)


def pod(pod: Pod) -> KubeObject:
    """A member's pod as a Kubernetes object, as far as it is known."""
    metadata = {
        "name": pod.name,
        "namespace": pod.namespace,
        "labels": pod.labels,
        "annotations": {"resource.karmada.io/cached-from-cluster": pod.cluster},
    }
    return KubeObject(
        {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "status": {"phase": pod.phase}}
    )
