"""Audits of override rules: manifests in clusters as other override policies would have made them."""

from collections.abc import Mapping
from typing import Final

import pytest

from engine.proof import audit
from engine.proof.rules import UNCHANGED, Rules
from events import topics
from events.json_values import Json
from events.shapes import PolicyRef
from tests.builders.inputs import capacity, deployment, joined, override, override_deleted, policy
from tests.builders.manifests import on
from tests.deciders.story import Story

REF: Final = PolicyRef(kind="OverridePolicy", name="o", namespace="default")


def labels(value: str) -> Mapping[str, object]:
    """A rule that adds a label."""
    return {"overriders": {"labelsOverrider": [{"operator": "add", "value": {"tier": value}}]}}


def rules(rule: Mapping[str, object], *names: str) -> Rules:
    """Rules by which the override policy would have this rule, for Deployments with these names."""
    selectors: list[Json] = [{"apiVersion": "apps/v1", "kind": "Deployment", "name": name} for name in names]
    return Rules(overrides={REF: {"resourceSelectors": selectors, "overrideRules": [rule]}})


async def played() -> Story:
    """A history in which two of three workloads get a label in two clusters, again and again."""
    story = Story()
    await story.submit(joined("member1"), joined("member2"), capacity("member1"), capacity("member2"))
    named: list[Json] = [
        {"apiVersion": "apps/v1", "kind": "Deployment", "name": name} for name in ("web", "api")
    ]
    await story.submit(override("o", labels("front"), selectors=named), policy("p", on("member1", "member2")))
    await story.submit(deployment("web", 2), deployment("api", 2), deployment("db", 2))
    await story.submit(deployment("web", 3))
    return story


async def audited(story: Story, changed: Rules, last: int | None = None) -> dict[str, int]:
    report = audit.merged([await audit.audit(story.log, range(topics.SHARDS), changed, last=last)])
    assert report.differing == 0
    return {group.reason: group.works for group in report.manifests}


@pytest.mark.parametrize("changed", [UNCHANGED, rules(labels("front"), "web", "api")])
async def test_same_rules_make_the_same_manifests(changed: Rules) -> None:
    assert await audited(await played(), changed) == {}


async def test_each_work_with_another_manifest_counts_once_and_is_shown() -> None:
    story = await played()
    report = await audit.audit(story.log, range(topics.SHARDS), rules(labels("back"), "web", "api"))
    (group,) = report.manifests
    assert (group.reason, group.works) == ("OverridePolicy default/o would apply with another result", 4)
    assert len(group.examples) == 3
    removed, added = [line for line in group.examples[0].diff if line[0] in "+-"]
    assert (removed.split(), added.split()) == (["-", '"tier":', '"front"'], ["+", '"tier":', '"back"'])


async def test_policy_that_would_select_other_workloads_counts_for_both() -> None:
    assert await audited(await played(), rules(labels("front"), "web", "db")) == {
        "OverridePolicy default/o would not apply": 2,
        "OverridePolicy default/o would apply in addition": 2,
    }


async def test_rule_that_could_not_be_applied_is_a_reason() -> None:
    broken = {"overriders": {"plaintext": [{"path": "/spec/none/x", "operator": "replace", "value": 1}]}}
    (reason,) = await audited(await played(), rules(broken, "web", "api"))
    assert reason.startswith("OverridePolicy default/o: plaintext: ")


async def test_past_works_count_even_if_the_policy_was_deleted() -> None:
    story = await played()
    await story.submit(override_deleted("o"))
    assert await audited(story, rules(labels("back"), "web", "api")) == {
        "OverridePolicy default/o would apply with another result": 4
    }


async def test_audit_up_to_a_number_knows_no_later_policy() -> None:
    story = Story()
    await story.submit(joined("member1"), capacity("member1"), policy("p", on("member1")))
    await story.submit(deployment("web", 2))
    last = story.log.last_number()
    selectors: list[Json] = [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}]
    await story.submit(override("o", labels("front"), selectors=selectors))
    changed = rules(labels("back"), "web")
    assert await audited(story, changed, last) == {}
    assert await audited(story, changed) == {"OverridePolicy default/o would apply with another result": 1}
