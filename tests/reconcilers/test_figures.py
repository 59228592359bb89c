"""Metrics of a worker: counted as in the log, with latencies by the times of the inputs."""

from prometheus_client import Metric

from engine.reconcilers import worker_metrics
from events import keys, topics
from events.client import statements
from tests.builders.inputs import deployment, joined, key, policy
from tests.builders.manifests import on
from tests.deciders.story import Story

Labels = tuple[tuple[str, str], ...]


def values(metrics: list[Metric]) -> dict[tuple[str, Labels], float]:
    """Return each sample by its name and labels."""
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for metric in metrics
        for sample in metric.samples
    }


def shown(story: Story, name: str, **labels: str) -> float:
    """Return a current metric of the story's worker."""
    samples = values(list(worker_metrics.WorkerMetrics(story.worker, story.log).collect()))
    return samples[f"reballast_worker_{name}", tuple(sorted(labels.items()))]


async def begun() -> Story:
    story = Story()
    await story.worker.recover()
    await story.submit(joined("member1"), policy("p", on("member1")))
    return story


async def test_totals_equal_those_of_the_log() -> None:
    story = await begun()
    steps, end, records = await story.steps(), story.log.last_number(), shown(story, "records_total")
    taken = shown(story, "steps_total")
    await story.submit(deployment("web", 2), deployment("api", 2))

    assert shown(story, "steps_total") - taken == await story.steps() - steps > 0
    # All received records except the two inputs.
    assert shown(story, "records_total") - records == story.log.last_number() - end - 2
    assert shown(story, "decided_keys_total") == 2
    assert shown(story, "ownerships_total") == topics.SHARDS
    assert shown(story, "failed_turns_total") == 0


async def test_each_shard_shows_its_bindings_and_its_lag() -> None:
    story = await begun()
    shard = str(keys.shard_of(key("web")))
    await story.submit(deployment("web", 2))
    assert shown(story, "shards") == topics.SHARDS
    assert shown(story, "owns", shard=shard) == 1
    assert shown(story, "bindings", shard=shard) == 1
    assert shown(story, "lag_records", topic="specs", partition=shard) == 0

    await story.write(deployment("web", 3), deployment("web", 4), joined("member2"))
    assert shown(story, "lag_records", topic="specs", partition=shard) == 2
    assert shown(story, "lag_records", topic="clusters", partition="0") == 1
    await story.settle()
    assert shown(story, "lag_records", topic="specs", partition=shard) == 0
    assert shown(story, "waiting_keys", shard=shard) == 0


async def test_wait_of_an_input_is_part_of_the_latency() -> None:
    story = await begun()
    await story.write(deployment("web", 2))
    story.now_ms += 700
    await story.settle()
    assert shown(story, "decision_latency_seconds_count") == 1
    assert shown(story, "decision_latency_seconds_sum") == 0.7
    assert shown(story, "decision_latency_seconds_bucket", le="0.5") == 0
    assert shown(story, "decision_latency_seconds_bucket", le="1.0") == 1
    assert shown(story, "commit_seconds_count") >= 1


async def test_rejections_are_counted() -> None:
    story = await begun()
    story.refused = 1
    statement = statements.Statement(data=deployment("web", 2), at_ms=story.now_ms)
    record = statements.record_of(statement, "/pipelines/shop", story.now_ms, "")
    await story.log.append([record, record])
    await story.settle()
    assert shown(story, "rejections_total") == 1


async def test_worker_shows_only_its_current_shards() -> None:
    story = await begun()
    story.worker.assign([3])
    await story.settle()
    assert shown(story, "shards") == 1
    samples = values(list(worker_metrics.WorkerMetrics(story.worker, story.log, lambda: 4).collect()))
    assert [labels for name, labels in samples if name == "reballast_worker_owns"] == [(("shard", "3"),)]
    assert samples["reballast_worker_fences_total", ()] == 4
