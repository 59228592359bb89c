"""Every metric in the dashboard is exported by a worker, an API or an agent, with the labels that it uses."""

import re
from collections.abc import Iterable

import pytest
from msgspec import structs
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from engine.agent.agent_metrics import AgentCollector
from engine.agent.kubeconfigs import Access
from engine.log.kafka import sequence
from engine.loop_lag import LoopLag
from engine.plans import drills
from engine.process import observer_service, periodic_drills
from engine.process.scaleout import SequenceMetrics
from engine.reconcilers.worker_metrics import WorkerMetrics
from tests.api.servers import client, served_requests, serving
from tests.builders.inputs import capacity, deployment, joined, policy
from tests.builders.manifests import on
from tests.compose import documents
from tests.deciders.story import Story
from tests.projections.logs import RecordBuilder
from tests.projections.stories import KEY, failed, placed

OF_PROMETHEUS = {"up", "instance", "job"}


def labels(metrics: Iterable[Metric]) -> dict[str, set[str]]:
    """Return the labels of each metric by name."""
    labels_by_name: dict[str, set[str]] = {}
    for metric in metrics:
        for sample in metric.samples:
            labels_by_name.setdefault(sample.name, set()).update(sample.labels)
    return labels_by_name


async def shown() -> dict[str, set[str]]:
    """Return all metrics of a worker, an API on Kafka, a scheduler, a drill and an agent, with their labels."""
    story = Story()
    await story.worker.recover()
    await story.submit(joined("member1"), policy("p", on("member1")), deployment("web", 2))
    labels_by_name = labels(WorkerMetrics(story.worker, story.log).collect())
    labels_by_name |= labels(LoopLag().collect())
    labels_by_name |= labels((await served_requests()).collect())
    labels_by_name |= labels(AgentCollector(["member1"]).collect())
    labels_by_name |= labels(SequenceMetrics(lambda: sequence.Counts(7, 3, 0, 2)).collect())
    observed = observer_service.Observed(
        "karmada",
        Access(server="http://127.0.0.1:1"),
        observer_service.Scheduling("reballast", "karmada-system"),
    )
    labels_by_name |= labels(observer_service.Observing(story.log, observed, lambda: 0, "a").collect())
    outage = drills.Outage("cluster", "member1", ("member1",))
    result = drills.Result(
        outage, moved=1, missing=0, needed={}, recovered_ms=1, suffering=[], assumptions=[]
    )
    labels_by_name |= labels(periodic_drills.metrics([result], 1))
    builder = RecordBuilder()
    figures = structs.replace(capacity("member1"), allocated={"cpu": "1"})
    records = [builder.input(event) for event in (joined("member1"), figures)]
    records += [*placed(builder), *builder.decide(failed(KEY))]
    async with serving(records) as services, client(services) as http:
        text = (await http.get("/metrics")).text
    return labels_by_name | labels(text_string_to_metric_families(text))


async def test_every_metric_is_exported() -> None:
    assert documents.metrics_named() - (await shown()).keys() == set()


async def test_every_metric_has_the_labels_of_its_queries() -> None:
    known = await shown()
    for panel in documents.dashboard().panels:
        for target in panel.targets:
            names = re.findall(rf"{documents.METRIC}|\bup\b", target.expr)
            available = OF_PROMETHEUS.union(*(known.get(name, set()) for name in names))
            grouped = [
                word for words in re.findall(r"by \(([^)]*)\)", target.expr) for word in words.split(", ")
            ]
            chosen = re.findall(r"[{,](\w+)=~?\"", target.expr)
            legend = re.findall(r"\{\{(\w+)\}\}", target.legend_format)
            assert {*grouped, *chosen, *legend} <= available, f"{panel.title}: {target.expr}"
            # Grouping drops all other labels, so a legend cannot show them.
            assert not grouped or set(legend) <= set(grouped), f"{panel.title}: {target.legend_format}"


def test_queried_jobs_are_scraped() -> None:
    jobs = {job for expression in documents.expressions() for job in re.findall(r'job="(\w+)"', expression)}
    assert jobs <= {scrape.job_name for scrape in documents.scrapes()}
    assert jobs


@pytest.mark.parametrize("expression", documents.expressions())
def test_totals_are_queried_as_rates_and_other_metrics_directly(expression: str) -> None:
    for name, growth in re.findall(r"((?:\w+\()?)\b(?:reballast_)(\w+)", expression):
        is_total = growth.endswith(("_total", "_bucket"))
        assert is_total == (name in {"rate(", "increase("}), expression
    assert expression.count("(") == expression.count(")")


async def test_readme_lists_every_metric_and_no_other() -> None:
    listed: set[str] = set()
    for line in (documents.FOLDER / "README.md").read_text().splitlines():
        family = ""
        # A name with a leading underscore continues the family of the full name before it.
        for name in re.findall(r"`(?:\w+:\d+/)?(\w+)(?:\{[\w,]+\})?`", line.partition(" | ")[0]):
            whole = f"{family}{name}" if name.startswith("_") else name
            if whole.startswith("reballast_"):
                family = "_".join(whole.split("_")[:2])
                listed.add(whole)
    # A histogram has three metrics.
    names = {re.sub(r"_(?:bucket|count|sum)$", "", name) for name in await shown()}
    assert listed == {name for name in names if name.startswith("reballast_")}
