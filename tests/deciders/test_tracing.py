"""Trace context: consequences of an input carry the input's trace, on every shard and after restarts."""

import itertools

from engine.proof import verification
from engine.reconcilers import recovery, replay, worker
from events import decisions, health, keys, links, records, shapes, topics
from events.client import statements
from events.records import Envelope, from_headers
from events.tracing import NO_TRACE, Trace
from tests.builders.inputs import deployment, joined, key, policy, rebalancer, ref, tainted
from tests.builders.manifests import on
from tests.deciders.story import Story

PIPELINE = Trace("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "shop=1,other=a b")
OPERATOR = Trace("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00")
MALFORMED = Trace("00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01", "shop=1")
_ids = itertools.count()


def traced(trace: Trace, data: shapes.Event, at_ms: int) -> records.Record:
    """Return an input in a trace, as a producer writes it."""
    statement = statements.Statement(
        data=data, at_ms=at_ms, traceparent=trace.parent, tracestate=trace.state, id=f"traced-{next(_ids)}"
    )
    return statements.record_of(statement, "/pipelines/shop", at_ms, "")


async def append_traced(story: Story, trace: Trace, *data: shapes.Event) -> list[Envelope]:
    """Append inputs in a trace; return the envelopes of the consequences, without steps."""
    before = story.log.last_number()
    await story.log.append([traced(trace, event, story.now_ms) for event in data])
    await story.settle()
    envelopes = [
        from_headers(record.headers) for record in await story.log.read_all(before + len(data), 1000)
    ]
    return [head for head in envelopes if "step-taken" not in head.type]


def carried(head: Envelope) -> Trace:
    return Trace(head.traceparent, head.tracestate)


async def two_clusters(story: Story) -> None:
    await story.submit(joined("member1"), joined("member2"), policy("p", on("member1", "member2")))


async def test_decisions_and_works_carry_the_trace_of_the_template(story: Story) -> None:
    await two_clusters(story)
    heads = await append_traced(story, PIPELINE, deployment("web", 2))
    assert {head.type.split(".")[2] for head in heads} >= {"schedule-decided", "work-applied"}
    assert {carried(head) for head in heads} == {PIPELINE}


async def test_consequences_of_a_fact_carry_its_trace(story: Story) -> None:
    await two_clusters(story)
    await append_traced(story, PIPELINE, deployment("web", 2))
    heads = await append_traced(story, OPERATOR, tainted("member1", "NoExecute"))
    assert any(head.type.startswith("io.reballast.eviction-started") for head in heads)
    assert {carried(head) for head in heads} == {OPERATOR}


async def test_consequences_of_a_fact_carry_its_trace_despite_a_report_in_the_same_step(story: Story) -> None:
    await two_clusters(story)
    await append_traced(story, PIPELINE, deployment("web", 2))
    work = (await story.running(key("web")))["member1"]
    report = health.WorkloadReported(
        cluster="member1", key=key("web"), term=work.term, step=work.step, replicas=2, healthy=True
    )
    changes = [traced(OPERATOR, tainted("member1", "NoExecute"), story.now_ms)]
    await story.log.append([*changes, traced(NO_TRACE, report, story.now_ms)])
    await story.settle()

    evictions = [
        from_headers(record.headers)
        for record in await story.log.read(topics.DECISIONS, keys.shard_of(key("web")), 0, 1000)
        if "eviction-started" in record.headers["ce_type"]
    ]
    assert [carried(head) for head in evictions] == [OPERATOR]


async def test_trace_of_a_rebalancer_passes_through_other_shards(story: Story) -> None:
    await two_clusters(story)
    await append_traced(story, PIPELINE, deployment("web", 2), deployment("api", 2))
    heads = await append_traced(story, OPERATOR, rebalancer("demo", ref("web"), ref("api")))
    assert len(await story.recorded(links.RescheduleAnswered)) == 2
    assert any(head.type.startswith("io.reballast.reschedule-triggered") for head in heads)
    assert {carried(head) for head in heads} == {OPERATOR}


async def test_rejection_carries_the_trace_of_the_refused_input(story: Story) -> None:
    await two_clusters(story)
    template = deployment("web", 2)
    await append_traced(story, PIPELINE, template)
    story.refused = 1
    repeated = traced(OPERATOR, template, story.now_ms)
    await story.log.append([repeated, repeated])
    await story.settle()
    (rejected,) = await story.log.read(topics.REJECTIONS, 0, 0, 10)
    assert carried(from_headers(rejected.headers)) == OPERATOR


async def test_missing_or_malformed_trace_writes_no_trace(story: Story) -> None:
    await two_clusters(story)
    heads = await append_traced(story, NO_TRACE, deployment("web", 2))
    heads += await append_traced(story, MALFORMED, deployment("api", 2))
    assert {carried(head) for head in heads} == {NO_TRACE}
    for record in await story.log.read(topics.WORKS, keys.shard_of("member1"), 0, 100):
        assert not {"ce_traceparent", "ce_tracestate"} & record.headers.keys()


async def test_traced_steps_verify(story: Story) -> None:
    await two_clusters(story)
    await append_traced(story, PIPELINE, deployment("web", 2))
    await append_traced(story, OPERATOR, tainted("member1", "NoExecute"), rebalancer("demo", ref("web")))
    report = await verification.verify(story.log)
    assert (report.findings, report.differences) == ([], [])
    assert report.steps == await story.steps() > 0


async def test_waiting_keys_keep_their_trace_over_a_restart(story: Story) -> None:
    await two_clusters(story)
    names = [name for name in (f"web-{n}" for n in range(200)) if keys.shard_of(key(name)) == 0][:3]
    batch = [traced(PIPELINE, deployment(name, 2), story.now_ms) for name in names]
    await story.log.append(batch)
    fold, facts = (await replay.rebuild(story.log, [0])).shards[0]
    for topic in topics.FACT_TOPICS:
        await recovery.follow_facts(story.log, [fold], facts, topic, story.log.ends()[topic, 0])
    await recovery.take_own(story.log, fold, topics.SPECS, story.log.ends()[topics.SPECS, 0])
    # A worker decided one of the three keys, and died.
    await story.log.append(fold.decide(facts, story.now_ms, 1, term=99).records)

    story.worker = worker.Worker(story.log, story.clock)
    await story.settle()

    decided = [
        from_headers(record.headers)
        for record in await story.log.read(topics.DECISIONS, 0, 0, 1000)
        if "schedule-decided" in record.headers["ce_type"]
    ]
    assert [head.traceparent for head in decided] == [PIPELINE.parent] * 3
    assert len(await story.recorded(decisions.ScheduleDecided)) == 3
    assert not (await verification.verify(story.log)).findings
