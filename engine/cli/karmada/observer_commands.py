"""``observe`` and ``scheduler``: beside an existing Karmada."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

from cyclopts import Parameter, validators
from msgspec import structs

from engine.agent import kubeconfigs
from engine.cli import failures, options, serve
from engine.process import observer_service
from engine.scheduler import writer


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Source:
    """The kubeconfig of a control plane."""

    kubeconfig: Annotated[Path, Parameter(help="Kubeconfig of the Karmada control plane.")]
    context: options.Context = ""

    def access(self) -> kubeconfigs.Access:
        """Return access to the control plane; raises Failure if the kubeconfig is unusable."""
        errors, remedy = (
            (OSError, kubeconfigs.KubeconfigError),
            "use a kubeconfig that can read Karmada's API",
        )
        with failures.convert(errors, remedy, where=self.kubeconfig):
            return kubeconfigs.read(self.kubeconfig, self.context)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ControlPlane(Source):
    """An observed control plane, and the log of its observations."""

    control_plane: Annotated[str, Parameter(help="Name of the control plane in the log.")] = "karmada"
    data: serve.Data = None
    log: serve.Log = None

    def observed(self, scheduling: observer_service.Scheduling | None = None) -> observer_service.Observed:
        """The control plane to observe; raises Failure if the kubeconfig is unusable."""
        return observer_service.Observed(self.control_plane, self.access(), scheduling)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Scheduling:
    """The bindings to decide on, and the rate of writing."""

    name: Annotated[str, Parameter(help="Schedule for the policies with this schedulerName.")] = "reballast"
    namespace: Annotated[str, Parameter(help="Namespace of the Lease.")] = "karmada-system"
    writes_per_second: Annotated[
        float,
        Parameter(help="Maximum number of binding writes per second.", validator=validators.Number(gt=0)),
    ] = writer.WRITES_PER_SECOND


_SCHEDULING: Final = Scheduling()


def observe(
    control_plane: ControlPlane,
    *,
    listening: serve.Listening = serve.LISTENING,
    as_json: serve.AsJson = False,
) -> int:
    return _serve(control_plane, control_plane.observed(), listening, as_json=as_json)


def scheduler(
    control_plane: ControlPlane,
    *,
    scheduling: Scheduling = _SCHEDULING,
    listening: serve.Listening = serve.LISTENING,
    as_json: serve.AsJson = False,
) -> int:
    chosen = observer_service.Scheduling(scheduling.name, scheduling.namespace, scheduling.writes_per_second)
    return _serve(control_plane, control_plane.observed(chosen), listening, as_json=as_json)


def _serve(
    control_plane: ControlPlane,
    observed: observer_service.Observed,
    listening: serve.Listening,
    *,
    as_json: bool,
) -> int:
    return serve.serve_with(
        control_plane.data,
        lambda before: structs.replace(listening.chosen(before), log=control_plane.log, observed=observed),
        members=False,
        as_json=as_json,
    )
