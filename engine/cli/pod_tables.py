"""Tables of pods and works."""

from collections.abc import Callable, Container, Sequence
from typing import Final, TypeVar
from urllib.parse import quote

from msgspec import UNSET, Struct

from engine.cli import failures, next_commands, output, server_reads, table_rows
from engine.cli.client import Client
from engine.cli.table_rows import Listing
from engine.domain import marks
from engine.identity import kubeconfig
from engine.simulation.listed_statuses import Pod
from events.json_values import as_text
from events.kube_objects import KubeObject
from events.validation import known_kinds as kinds
from projections.documents.clusters import ShownWork

EVENT: Final = kinds.Kind(api_version="v1", kind="Event", plural="events")
"""The kind of the Events in a member."""

_Item = TypeVar("_Item")


class _Pods(Struct):
    items: list[Pod]
    truncated: bool = False


def pods(client: Client, names: Sequence[str], selection: server_reads.Selection) -> list[Pod]:
    """The selected pods of all members; with ``names``, only the pods with these names.

    Raises Failure if no pod has one of the names, if no members are simulated, or if an earlier time is selected.
    """
    if selection.as_of:
        raise failures.Failure(
            "--as-of: the log has no pods",
            next_commands.hint("see the replicas in each cluster", "get works", "--as-of"),
        )
    answer = client.find("members/pods", _Pods, namespace=selection.namespace, labelSelector=selection.labels)
    if answer is None:
        raise failures.Failure(
            "no members are simulated here, so there are no pods to list",
            "list them in the cluster, with its own kubeconfig: kubectl get pods",
        )
    if answer.truncated:
        output.warn(f"Only the first {len(answer.items):,} pods were read; choose fewer with -n and -l.")
    return _named(answer.items, names, "pods", lambda pod: (pod.name,))


def described(client: Client, pod: Pod) -> tuple[KubeObject, list[KubeObject]]:
    """A pod and its Events as its member's API has them; raises Failure."""
    proxy = kubeconfig.PROXY.format(quote(pod.cluster)).removeprefix("/")
    namespace = f"{proxy}/api/v1/namespaces/{quote(pod.namespace)}"
    reply = client.kubernetes("GET", f"{namespace}/pods/{quote(pod.name)}")
    if reply.is_refusal:
        raise failures.Failure(as_text(reply.body.get("message")))
    query = {"fieldSelector": f"involvedObject.kind=Pod,involvedObject.name={pod.name}"}
    events = server_reads.served_objects(client, EVENT, f"{namespace}/{EVENT.plural}", query)
    return KubeObject(reply.body), list(events)


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
    return Listing(columns, ("LABELS",), rows, namespace=namespace)


def works(client: Client, names: Sequence[str], *, namespace: str, as_of: str) -> list[ShownWork]:
    """The works in a namespace; with ``names``, only those whose work, Work object or binding has one of these names.

    A work is listed in the namespace of its template (in every namespace if the template is cluster-scoped), and in the
    execution namespace of its cluster. An empty namespace means all. Raises Failure if no work has one of the names.
    """
    listed = server_reads.items(client, "works", server_reads.Page[ShownWork], {"asOf": as_of})
    in_namespace = [
        work
        for work in listed
        if not namespace
        or work.resource.namespace in {"", namespace}
        or namespace == marks.work_namespace(work.cluster)
    ]
    return _named(in_namespace, names, "works", lambda work: (work.name, work.binding, _object_key(work)[1]))


def work_objects(client: Client, works: Sequence[ShownWork]) -> list[KubeObject]:
    """The Work objects of these works, as the Kubernetes API has them."""
    kind = server_reads.kind_of("work")
    objects = {value.key: value for value in server_reads.documents(client, kind, server_reads.Selection(""))}
    return [objects[key] for work in works if (key := _object_key(work)) in objects]


def _object_key(work: ShownWork) -> tuple[str, str]:
    """Namespace and name of a work's object."""
    template = work.resource
    name = marks.work_name(template.kind, template.namespace, template.name)
    return marks.work_namespace(work.cluster), name


def _named(
    items: list[_Item], names: Sequence[str], plural: str, names_of: Callable[[_Item], Container[str]]
) -> list[_Item]:
    """The items with each of these names, in this order; without names, all. Raises Failure if a name has no item."""
    if not names:
        return items
    matching = {name: [item for item in items if name in names_of(item)] for name in names}
    for name, named_items in matching.items():
        if not named_items:
            remedy = next_commands.hint("see", f"get {plural} -A")
            raise failures.Failure(f'{plural} "{name}" not found', remedy)
    return [item for named_items in matching.values() for item in named_items]


def work_table(works: list[ShownWork]) -> Listing:
    rows: list[table_rows.Row] = [
        (
            _object_key(work)[1],
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
