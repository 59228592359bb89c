"""``bench``: measurements, each with a baseline of the same run. A benchmark's modules are loaded when it is called."""

import os
from collections.abc import Callable
from typing import Annotated, TypeVar

from cyclopts import App, Parameter, validators

from engine.bench.runs import Figures
from engine.cli import failures, options, output
from engine.cli.help_texts import questions

app = App(name="bench", help=questions.BENCH, help_format="plaintext")

_ResultT = TypeVar("_ResultT")

AsJson = Annotated[bool, Parameter(name="--json", negative=(), help="Print JSON instead of a table.")]
Clusters = Annotated[int, Parameter(help="Member clusters.", validator=options.POSITIVE)]
Mode = Annotated[
    str,
    Parameter(
        help="duplicated, static, dynamic, aggregated or region; prefix it with steady- or fresh- to rescale."
    ),
]
Seconds = Annotated[float, Parameter(help="How long to measure.", validator=validators.Number(gt=0))]
Replicas = Annotated[int, Parameter(help="Replicas of each workload.", validator=options.POSITIVE)]
Events = Annotated[int, Parameter(help="Records to append and to read.", validator=options.POSITIVE)]
Bindings = Annotated[int, Parameter(help="Deployments.", validator=options.POSITIVE)]


@app.command
def placement(
    *,
    clusters: Clusters = 1000,
    mode: Mode = "dynamic",
    seconds: Seconds = 3.0,
    replicas: Replicas = 100,
    as_json: AsJson = False,
) -> None:
    """Decisions per second, on one core."""
    from engine.bench import placement as bench  # noqa: PLC0415  # load only what is measured

    _print_figures(lambda: bench.run(clusters, mode, seconds, replicas), as_json=as_json)


@app.command
def storm(*, bindings: Bindings = 5000, as_json: AsJson = False) -> None:
    """Time from an input to the last decision that follows: applies, a rebalancer, a taint."""
    from engine.bench import storm as bench  # noqa: PLC0415  # load only what is measured

    _print_figures(lambda: bench.run(bindings, output.warn), as_json=as_json)


@app.command
def failover(*, clusters: Clusters = 100, bindings: Bindings = 10_000, as_json: AsJson = False) -> None:
    """Time to reschedule all affected workloads after a tenth of the clusters fail at once."""
    from engine.bench import failover as bench  # noqa: PLC0415  # load only what is measured

    _print_figures(lambda: bench.run(clusters, bindings, output.warn), as_json=as_json)


@app.command
def plan(
    *,
    bindings: Bindings = 10_000,
    moved: Annotated[
        int | None,
        Parameter(
            help="Deployments that the change affects; by default a tenth.", validator=options.POSITIVE
        ),
    ] = None,
    clusters: Clusters = 20,
    as_json: AsJson = False,
) -> None:
    """Time to predict the effect of a change (plan), and of each failure (drill)."""
    from engine.bench import plan as bench  # noqa: PLC0415  # load only what is measured

    _print_figures(lambda: bench.run(bindings, moved, clusters, output.warn), as_json=as_json)


@app.command
def log(*, events: Events = 20_000, as_json: AsJson = False) -> None:
    """Records appended and read per second."""
    from engine.bench import log as bench  # noqa: PLC0415  # load only what is measured

    _print_figures(lambda: bench.run(events), as_json=as_json)


@app.command
def replay(*, bindings: Bindings = 1000, as_json: AsJson = False) -> None:
    """Events replayed per second."""
    from engine.bench import replay as bench  # noqa: PLC0415  # load only what is measured

    _print_figures(lambda: bench.run(bindings), as_json=as_json)


@app.command
def verify(
    *,
    records: Annotated[int, Parameter(help="Records of the log.", validator=options.POSITIVE)] = 1_000_000,
    processes: options.Processes = None,
    reporting: Annotated[
        int,
        Parameter(
            help="Clusters that report their health before each edit; 0: edits only.",
            validator=validators.Number(gte=0),
        ),
    ] = 0,
    as_json: AsJson = False,
) -> None:
    """Records verified and audited per second: all records, a tenth and a hundredth of them."""
    from engine.bench import verify as bench  # noqa: PLC0415  # load only what is measured

    count = processes or len(os.sched_getaffinity(0))
    _print_figures(lambda: bench.run(records, count, reporting, output.warn), as_json=as_json)


@app.command
def kafka(
    *,
    log: Annotated[str, Parameter(help="Brokers: kafka://host:port[,host:port].", env_var="REBALLAST_LOG")],
    bindings: Bindings = 5000,
    as_json: AsJson = False,
) -> None:
    """Inputs decided per second by workers on Kafka, and the time for one input."""
    from engine.bench import kafka as bench  # noqa: PLC0415  # load only what is measured

    _print_figures(lambda: bench.run(log, bindings, output.warn), as_json=as_json)


@app.command
def kube(*, bindings: Bindings = 9_000, as_json: AsJson = False) -> None:
    """Requests per second of the Kubernetes API, and the delay until watchers see a decision."""
    from engine.bench import kube as bench  # noqa: PLC0415  # load only what is measured

    _print_figures(lambda: bench.run(bindings, output.warn), as_json=as_json)


@app.command
def observe(*, bindings: Bindings = 10_000, as_json: AsJson = False) -> None:
    """Changes of a Karmada observed per second, and the time until a binding is decided."""
    from engine.bench import observe as bench  # noqa: PLC0415  # load only what is measured

    _print_figures(lambda: bench.run(bindings, output.warn), as_json=as_json)


@app.command
def mixed(
    *,
    commands: Annotated[int, Parameter(help="Number of commands.", validator=options.POSITIVE)] = 2_000,
    as_json: AsJson = False,
) -> None:
    """Disk space and memory that mixed commands use."""
    from engine.bench import mixed as bench  # noqa: PLC0415  # load only what is measured

    _print_figures(lambda: bench.run(commands, output.warn), as_json=as_json)


@app.command
def growth(
    *,
    size: Annotated[int, Parameter(help="The smallest size, N.", validator=options.POSITIVE)] = 10,
    only: Annotated[str, Parameter(help="Only kinds of input whose names contain this text.")] = "",
    as_json: AsJson = False,
) -> None:
    """How the cost of each kind of input grows: at N, 10 N and 100 N."""
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
