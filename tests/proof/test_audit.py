"""Audits: each recorded step decided again, from the recorded state, with other rules or with other policies."""

import asyncio
from pathlib import Path

import msgspec
import pytest

from engine.deciders import scheduling
from engine.karmada.default_tolerations import NOT_READY, TolerationSeconds
from engine.process import log_locations, proofs
from engine.proof import audit
from engine.proof.rules import UNCHANGED, Rules, unrecorded
from events import codec, decisions, policies, records, topics
from events.json_values import Json, object_at
from events.shapes import PolicyRef
from tests.builders import manifests
from tests.builders.inputs import capacity, deployment, joined, policy, raw, tainted
from tests.builders.log_records import record, structured
from tests.builders.manifests import DYNAMIC, on
from tests.deciders.story import Story
from tests.proof import logs
from tests.proof.logs import changed_mode

BOTH = on("member1", "member2", scheduling=DYNAMIC)
P = PolicyRef(kind="PropagationPolicy", name="p", namespace="default")


async def audited(story: Story, rules: Rules = UNCHANGED) -> audit.Audit:
    return audit.merged([await audit.audit(story.log, range(topics.SHARDS), rules)])


def reasons(report: audit.Audit) -> dict[str, int]:
    return {group.reason: group.count for group in report.groups}


async def count(story: Story, kind: type[decisions.ScheduleDecided]) -> int:
    decoded = [codec.decode(record) for record in await logs.all_records(story.log)]
    return sum(isinstance(event, codec.Decoded) and isinstance(event.data, kind) for event in decoded)


async def test_policies_that_the_log_does_not_have_are_found() -> None:
    story = Story()
    # Without a subject, as producers may write records.
    await story.submit(policy("p", BOTH))
    other = msgspec.structs.replace(P, name="q")
    assert await unrecorded(story.log, Rules(specs={P: {}, other: {}})) == [other]


async def test_same_rules_decide_the_same() -> None:
    story = Story()
    await logs.play(story)
    report = await audited(story)
    assert report.steps == await story.steps()
    assert (report.groups, report.differing) == ([], 0)


async def test_each_decision_of_a_changed_rule_differs_once_and_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    story = Story()
    await logs.play(story)
    expected = await count(story, decisions.ScheduleDecided)
    monkeypatch.setattr(scheduling, "_mode", changed_mode)
    report = await audited(story)
    by_mode = [group for group in report.groups if "mode" in group.reason]
    assert sum(group.count for group in by_mode) == report.differing >= expected > 1
    example = by_mode[0].examples[0]
    (recorded,), (decided,) = example.recorded.values(), example.decided.values()
    assert decided == {**recorded, "mode": "Careless"}


async def test_default_tolerations_would_have_kept_workloads_in_a_failed_cluster() -> None:
    story = Story()
    await story.submit(joined("member1"), joined("member2"), capacity("member1"), capacity("member2", 20))
    await story.submit(policy("p", BOTH), deployment("web", 6))
    await story.submit(tainted("member1", "NoExecute", NOT_READY))
    assert (await audited(story)).groups == []
    report = await audited(story, Rules(tolerated=TolerationSeconds(not_ready=300)))
    (group,) = report.groups
    assert group.reason.startswith("no eviction-started")
    (example,) = group.examples
    assert "eviction-started" in example.recorded
    # The rest of the history is decided from what was recorded, so nothing follows from the difference.
    assert report.differing_steps == 1


async def test_another_policy_would_have_chosen_other_clusters() -> None:
    story = Story()
    await story.submit(joined("member1"), joined("member2"), capacity("member1"), capacity("member2", 20))
    await story.submit(policy("p", BOTH), deployment("web", 6))
    await story.submit(policy("other", BOTH, {"apiVersion": "v1", "kind": "ConfigMap"}))
    rules = Rules(
        specs={P: spec_of(manifests.policy("p", on("member2", scheduling=DYNAMIC), namespace="default"))}
    )
    report = await audited(story, rules)
    assert reasons(report)
    (group,) = report.groups
    assert "schedule-decided: available, clusters" in group.reason
    await audit.explain(story.log, report, rules)
    (example,) = group.examples
    assert example.recorded_explanation is not None
    assert example.decided_explanation is not None
    assert set(example.recorded_explanation.clusters) == {"member1", "member2"}
    assert example.decided_explanation.clusters == {"member2": 6}


async def test_policy_in_structured_content_mode_is_changed_too() -> None:
    story = Story()
    await story.submit(joined("member1"), joined("member2"), capacity("member1"), capacity("member2", 20))
    await story.log.append([structured(record(policy("p", on("member1"))))])
    await story.submit(deployment("web", 6))
    other = Rules(specs={P: spec_of(manifests.policy("p", on("member2"), namespace="default"))})
    assert (await audited(story)).groups == []
    assert reasons(await audited(story, other)) == {"schedule-decided: available, clusters": 1}


async def test_policy_with_more_selectors_claims_unclaimed_templates() -> None:
    story = Story()
    await story.submit(joined("member1"), capacity("member1"))
    await story.submit(
        policy("p", on("member1"), {"apiVersion": "v1", "kind": "ConfigMap"}), deployment("web", 2)
    )
    rules = Rules(specs={P: spec_of(manifests.policy("p", on("member1"), namespace="default"))})
    report = await audited(story, rules)
    assert reasons(report) == {"also binding-declared": 1}


async def test_range_limits_the_compared_steps_but_not_the_replayed_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    story = Story()
    await logs.play(story)
    monkeypatch.setattr(scheduling, "_mode", changed_mode)
    whole = await audited(story)
    middle = story.log.last_number() // 2
    parts = [
        await audit.audit(story.log, range(topics.SHARDS), last=middle),
        await audit.audit(story.log, range(topics.SHARDS), first=middle + 1),
    ]
    assert [sum(part.steps for part in parts), sum(part.differing for part in parts)] == [
        whole.steps,
        whole.differing,
    ]


async def test_processes_audit_a_log_that_is_open(tmp_path: Path) -> None:
    async with logs.opened(tmp_path) as log:
        story = Story(log)
        await logs.play(story)
        location = await asyncio.to_thread(log_locations.parse, str(tmp_path))
        report = await asyncio.to_thread(proofs.audit, location, UNCHANGED, processes=2)
        assert msgspec.json.encode(report) == msgspec.json.encode(await audited(story))


def spec_of(value: Json) -> Json:
    return object_at(msgspec.json.decode(raw(value), type=dict[str, object]), "spec")


@pytest.mark.parametrize("content", [b"5", b'{"spec":{"placement":5}}', b'{"kind":"\xff"}'])
async def test_refused_policies_do_not_stop_an_audit_with_other_policies(content: bytes) -> None:
    story = Story()
    await logs.play(story)
    written = policies.PolicyApplied(manifest=msgspec.Raw(content))
    head = records.Envelope(id="odd", source="/hostile", type="", time="2026-01-01T00:00:00Z")
    await story.log.append([codec.encode(written, head, partition=0, key="odd")])
    await story.submit(deployment("late", 2))
    report = await audited(story, Rules(tolerated=TolerationSeconds(not_ready=300)))
    assert report.steps == await story.steps()
    assert not report.unreadable
