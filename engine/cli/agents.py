"""Real member clusters: ``join`` registers one, ``agent`` serves it."""

import asyncio
import contextlib
import shlex
from pathlib import Path
from typing import Annotated, Final
from urllib.parse import quote

from cyclopts import Parameter, validators

from engine.agent import agent_process, kinds, kubeconfigs
from engine.agent import configuration as configurations
from engine.agent.agent_metrics import AgentCollector
from engine.agent.api_errors import ApiError
from engine.agent.configuration import Configuration
from engine.agent.kubeconfigs import Access
from engine.agent.member import GRACE_SECONDS, Settings
from engine.agent.member_api import MemberApi
from engine.agent.messages import Token
from engine.cli import (
    apply,
    failures,
    kube_objects,
    next_commands,
    options,
    output,
    results,
    server_location,
    server_reads,
)
from engine.cli.client import Client
from engine.cli.kube_objects import KubeObjects, Target
from engine.cli.results import Result
from events import vocabulary
from events.clusters import ApiKind
from events.json_values import Json, as_text
from events.kube_objects import KubeObject
from events.validation import known_kinds
from projections.documents.clusters import enablements

_CHECKPOINT: Final = "agent.sqlite"
_GRACE_MIN: Final = 4
Kubeconfig = Annotated[Path, Parameter(help="Kubeconfig of the cluster's own API, as for kubectl.")]
To = Annotated[Path | None, Parameter(help="File for the agent's configuration; by default NAME.agent.json.")]
Grace = Annotated[
    int,
    Parameter(
        help="Seconds without a heartbeat of the agent after which the cluster's Ready condition becomes Unknown.",
        validator=validators.Number(gte=_GRACE_MIN),
    ),
]


def join(
    name: Annotated[str, Parameter(help="Name for the cluster in the control plane.")],
    /,
    *,
    kubeconfig: Kubeconfig,
    context: options.Context = "",
    provider: Annotated[str, Parameter(help="Provider of the cluster (spec.provider).")] = "",
    region: Annotated[str, Parameter(help="Region of the cluster (spec.region).")] = "",
    to: To = None,
    server: options.Server = options.SERVER,
) -> int:
    access = _read(kubeconfig, context)
    served, version, cluster_id = asyncio.run(_discovered(access))
    spec: Json = {"syncMode": "Pull", "apiEndpoint": access.server, "id": cluster_id}
    spec |= {field: text for field, text in (("provider", provider), ("region", region)) if text}
    status: Json = {"apiEnablements": enablements(served), "kubernetesVersion": version}
    with server.client() as client:
        _check_unregistered(client, name, cluster_id)
        code = results.print_results([_joined(KubeObjects(client), name, spec, status)], as_json=server.json)
        if code:
            return code
        token = client.post(f"agents/{quote(name, safe='')}/token", {}, Token).token
    path = to or Path(f"{name}.agent.json")
    reached = server_location.find(server.data)
    configuration = Configuration(
        cluster=name,
        server=reached.url,
        token=token,
        kubeconfig=str(kubeconfig.absolute()),
        context=context,
        authority=reached.authority,
    )
    with failures.convert(OSError, "join it again, with --to and the path of a writable file", where=path):
        configurations.write(path, configuration)
    # With ``--json``, standard output must contain only the result, so print the hint to standard error.
    (output.warn if server.json else output.print_line)(
        f"Run its agent with: reballast agent {shlex.quote(str(path))}"
    )
    return failures.OK


def _check_unregistered(client: Client, name: str, cluster_id: str) -> None:
    """Raise Failure if another cluster has this name, or if this cluster is registered by another name."""
    ids = {
        cluster.name: as_text(cluster.at("spec", "id"))
        for cluster in server_reads.objects(client, "clusters")
    }
    if ids.pop(name, "") not in {"", cluster_id}:
        raise failures.Failure(
            f"cluster/{name} already exists, and is another cluster",
            next_commands.hint("choose another name, or remove that cluster", f"unjoin {name}"),
        )
    same = next(
        (other for other, registered_id in ids.items() if cluster_id and registered_id == cluster_id), ""
    )
    if same:
        raise failures.Failure(
            f"the same cluster is already registered as cluster/{same}",
            next_commands.hint("use that name, check --kubeconfig and --context, or", f"unjoin {same}"),
        )


def _joined(objects: KubeObjects, name: str, spec: Json, status: Json) -> Result:
    """Create the Cluster, or update spec and status of an existing one; return the result."""
    target = Target(known_kinds.CLUSTER, "", name)
    document: Json = {
        "apiVersion": known_kinds.CLUSTER_GROUP,
        "kind": "Cluster",
        "metadata": {"name": name},
        "spec": spec,
        "status": status,
    }
    result = apply.applied(objects, target, KubeObject(document))
    if result.problems or result.action == "created":
        return result
    reply = objects.patch(target, {"status": status}, part="status")
    return kube_objects.result(target, "configured", reply) if reply.is_refusal else result


def agent(
    *configuration: Annotated[Path, Parameter(help="Configuration files that `join` wrote.")],
    checkpoint: Annotated[
        Path | None, Parameter(help="File in which the agents store their progress.")
    ] = None,
    grace: Grace = GRACE_SECONDS,
    metrics_port: options.MetricsPort = None,
    metrics_host: options.Host = "127.0.0.1",
) -> int:
    if not configuration:
        raise failures.usage(
            "missing configuration file", "reballast agent NAME.agent.json, written by reballast join"
        )
    with failures.convert(configurations.ConfigurationError, "create it with: reballast join"):
        agent_configurations = [configurations.read(path) for path in configuration]
    kept = checkpoint or configuration[0].absolute().parent / _CHECKPOINT
    names = ", ".join(entry.cluster for entry in agent_configurations)
    output.print_line(f"Serving {names}; Ctrl-C stops it.")
    remedy = "check the kubeconfig that the configuration names"
    with failures.convert((kubeconfigs.KubeconfigError, OSError), remedy):
        asyncio.run(
            _serve(agent_configurations, kept, Settings(grace_seconds=grace), metrics_host, metrics_port)
        )
    return failures.OK


async def _serve(
    agent_configurations: list[Configuration], kept: Path, settings: Settings, host: str, port: int | None
) -> None:
    collector = AgentCollector([entry.cluster for entry in agent_configurations])
    if port is None:
        await agent_process.run(agent_configurations, kept, settings, collector)
        return
    from engine.process import health_endpoint  # noqa: PLC0415  # only needed with --metrics-port

    watch = health_endpoint.Watch(host=host, port=port)
    shown = health_endpoint.watched(
        watch, lambda: not collector.unreachable(), collector, collector.unreachable
    )
    async with contextlib.AsyncExitStack() as stack:
        try:
            await stack.enter_async_context(shown)
        except OSError as error:
            raise failures.Failure(f"{host}:{port}: {error}", "choose another --metrics-port") from None
        await agent_process.run(agent_configurations, kept, settings, collector)


def _read(path: Path, context: str) -> Access:
    with failures.convert((kubeconfigs.KubeconfigError, OSError), "use a kubeconfig that works with kubectl"):
        return kubeconfigs.read(path, context)


async def _discovered(access: Access) -> tuple[tuple[ApiKind, ...], str, str]:
    """Return the cluster's API kinds, its Kubernetes version, and the uid of kube-system, which identifies it."""
    errors, remedy = (
        (ApiError, kubeconfigs.KubeconfigError),
        "check that it is up and that the kubeconfig is right",
    )
    async with contextlib.aclosing(MemberApi(access)) as api:
        with failures.convert(errors, remedy, where="the cluster does not answer"):
            served = await api.discover()
            version = await api.version()
            namespaces = next(
                (kind for kind in served if (kind.api_version, kind.kind) == vocabulary.NAMESPACE), None
            )
            system = await api.get(namespaces, "", "kube-system") if namespaces else None
    return kinds.enabled(served), version, system.uid if system is not None else ""
