"""``bench``: measurements, each with a baseline of the same run. A benchmark's modules are loaded when it is called."""

import os
from collections.abc import Callable
from typing import Annotated, Final, TypeVar

from cyclopts import App, Parameter, validators

from engine.bench.runs import Figures
from engine.cli import failures, output
from engine.cli.help_texts import questions

app = App(name="bench", help=questions.BENCH, help_format="plaintext")

_ResultT = TypeVar("_ResultT")
_POSITIVE: Final = validators.Number(gte=1)

AsJson = Annotated[bool, Parameter(name="--json", negative=(), help="Print JSON instead of a table.")]
Clusters = Annotated[int, Parameter(help="Member clusters.", validator=_POSITIVE)]
Mode = Annotated[
    str,
    Parameter(
        help="duplicated, static, dynamic, aggregated or region; prefix it with steady- or fresh- to rescale."
    ),
]
Seconds = Annotated[float, Parameter(help="How long to measure.", validator=validators.Number(gt=0))]
Replicas = Annotated[int, Parameter(help="Replicas of each workload.", validator=_POSITIVE)]
Events = Annotated[int, Parameter(help="Records to append and to read.", validator=_POSITIVE)]
Bindings = Annotated[int, Parameter(help="Deployments.", validator=_POSITIVE)]


@app.command(name="placement", help="Decisions per second, on one core.")
def placement(
    *,
    clusters: Clusters = 1000,
    mode: Mode = "dynamic",
    seconds: Seconds = 3.0,
    replicas: Replicas = 100,
    as_json: AsJson = False,
) -> None:
    """Measure scheduling decisions per second."""
    from engine.bench import placement as bench  # noqa: PLC0415  # load only what is measured

    _print_figures(lambda: bench.run(clusters, mode, seconds, replicas), as_json=as_json)


@app.command(
    name="storm", help="Time from an input to the last decision that follows: applies, a rebalancer, a taint."
)
def storm(*, bindings: Bindings = 5000, as_json: AsJson = False) -> None:
    """Measure the time from an input to the last decision that follows from it."""
    from engine.bench import storm as bench  # noqa: PLC0415  # load only what is measured

    _print_figures(lambda: bench.run(bindings, output.warn), as_json=as_json)


@app.command(
    name="failover",
    help="Time to reschedule all affected workloads after a tenth of the clusters fail at once.",
)
def failover(*, clusters: Clusters = 100, bindings: Bindings = 10_000, as_json: AsJson = False) -> None:
    """Measure rescheduling after a tenth of the clusters fail at once."""
    from engine.bench import failover as bench  # noqa: PLC0415  # load only what is measured

    _print_figures(lambda: bench.run(clusters, bindings, output.warn), as_json=as_json)


@app.command(name="plan", help="Time to predict the effect of a change (plan), and of each failure (drill).")
def plan(
    *,
    bindings: Bindings = 10_000,
    moved: Annotated[
        int | None,
        Parameter(help="Deployments that the change affects; by default a tenth.", validator=_POSITIVE),
    ] = None,
    clusters: Clusters = 20,
    as_json: AsJson = False,
) -> None:
    """Measure plans of a policy edit and a taint, and a drill."""
    from engine.bench import plan as bench  # noqa: PLC0415  # load only what is measured

    _print_figures(lambda: bench.run(bindings, moved, clusters, output.warn), as_json=as_json)


@app.command(name="log", help="Records appended and read per second.")
def log(*, events: Events = 20_000, as_json: AsJson = False) -> None:
    """Measure appends and reads of the log per second."""
    from engine.bench import log as bench  # noqa: PLC0415  # load only what is measured

    _print_figures(lambda: bench.run(events), as_json=as_json)


@app.command(name="replay", help="Events replayed per second.")
def replay(*, bindings: Bindings = 1000, as_json: AsJson = False) -> None:
    """Measure replayed events per second."""
    from engine.bench import replay as bench  # noqa: PLC0415  # load only what is measured

    _print_figures(lambda: bench.run(bindings), as_json=as_json)


@app.command(
    name="verify",
    help="Records verified and audited per second: all records, a tenth and a hundredth of them.",
)
def verify(
    *,
    records: Annotated[int, Parameter(help="Records of the log.", validator=_POSITIVE)] = 1_000_000,
    processes: Annotated[
        int | None,
        Parameter(help="Processes that share the work; by default one per processor.", validator=_POSITIVE),
    ] = None,
    reporting: Annotated[
        int,
        Parameter(
            help="Clusters that report their health before each edit; 0: edits only.",
            validator=validators.Number(gte=0),
        ),
    ] = 0,
    as_json: AsJson = False,
) -> None:
    """Measure the proof of a log with many small steps, and its memory."""
    from engine.bench import verify as bench  # noqa: PLC0415  # load only what is measured

    count = processes or len(os.sched_getaffinity(0))
    _print_figures(lambda: bench.run(records, count, reporting, output.warn), as_json=as_json)


@app.command(name="kafka", help="Inputs decided per second by workers on Kafka, and the time for one input.")
def kafka(
    *,
    log: Annotated[str, Parameter(help="Brokers: kafka://host:port[,host:port].", env_var="REBALLAST_LOG")],
    bindings: Bindings = 5000,
    as_json: AsJson = False,
) -> None:
    """Measure inputs per second on Kafka."""
    from engine.bench import kafka as bench  # noqa: PLC0415  # load only what is measured

    _print_figures(lambda: bench.run(log, bindings, output.warn), as_json=as_json)


@app.command(
    name="kube",
    help="Requests per second of the Kubernetes API, and the delay until watchers see a decision.",
)
def kube(*, bindings: Bindings = 9_000, as_json: AsJson = False) -> None:
    """Measure requests per second of the Kubernetes API."""
    from engine.bench import kube as bench  # noqa: PLC0415  # load only what is measured

    _print_figures(lambda: bench.run(bindings, output.warn), as_json=as_json)


@app.command(
    name="observe", help="Changes of a Karmada observed per second, and the time until a binding is decided."
)
def observe(*, bindings: Bindings = 10_000, as_json: AsJson = False) -> None:
    """Measure the observer and the scheduler of an existing Karmada."""
    from engine.bench import observe as bench  # noqa: PLC0415  # load only what is measured

    _print_figures(lambda: bench.run(bindings, output.warn), as_json=as_json)


@app.command(name="mixed", help="Disk space and memory that mixed commands use.")
def mixed(
    *,
    commands: Annotated[int, Parameter(help="Number of commands.", validator=_POSITIVE)] = 2_000,
    as_json: AsJson = False,
) -> None:
    """Measure bytes on disk per command, and memory after each quarter of the commands."""
    from engine.bench import mixed as bench  # noqa: PLC0415  # load only what is measured

    _print_figures(lambda: bench.run(commands, output.warn), as_json=as_json)


@app.command(name="growth", help="How the cost of each kind of input grows: at N, 10 N and 100 N.")
def growth(
    *,
    size: Annotated[int, Parameter(help="The smallest size, N.", validator=_POSITIVE)] = 10,
    only: Annotated[str, Parameter(help="Only kinds of input whose names contain this text.")] = "",
    as_json: AsJson = False,
) -> None:
    """Measure costs at N, 10 N and 100 N, and their exponents."""
    from engine.bench import growth as bench  # noqa: PLC0415  # load only what is measured

    figures = _measured(lambda: bench.run(size, only, output.warn))
    if as_json:
        output.json(figures)
    else:
        output.table(bench.HEADINGS, bench.table(figures))


def _print_figures(measure: Callable[[], Figures], *, as_json: bool) -> None:
    figures = _measured(measure)
    if as_json:
        output.json(figures)
    else:
        output.table(("FIGURE", "VALUE"), [(name, str(value)) for name, value in figures.items()])


def _measured(measure: Callable[[], _ResultT]) -> _ResultT:
    try:
        return measure()
    except ValueError as error:
        raise failures.usage(str(error)) from None
