"""Overall quotas of FederatedResourceQuotas bound what the bindings of a namespace use together."""

import pytest

from engine.deciders import overall_quotas
from engine.deciders.step_outputs import Outputs
from events import decisions, keys, policies, quota_decisions, release, shapes
from events.json_values import Json
from tests.builders import manifests
from tests.builders.inputs import (
    applied,
    capacity,
    configuration,
    deleted,
    deployment,
    joined,
    key,
    policy,
    quota,
    rebalancer,
    ref,
    tainted,
)
from tests.builders.manifests import AGGREGATED, DUPLICATED, POLICIES, on, selector
from tests.deciders.story import Story

WEB, API = key("web"), key("api")
QUOTA = shapes.WorkloadRef(
    api_version=POLICIES, kind="FederatedResourceQuota", name="all", namespace="default"
)
LIMIT = "FederatedResourceQuota(default/all) exceeded for resource cpu: requested sum {}, limit {}."


async def _begun(story: Story, cpu: str) -> None:
    """Two clusters with capacity, a policy that divides Deployments over them, and a quota of CPU."""
    await story.submit(
        joined("member1"),
        joined("member2"),
        capacity("member1"),
        capacity("member2"),
        policy("p", on("member1", "member2", scheduling=AGGREGATED), selector()),
    )
    if cpu:
        await story.submit(quota("all", cpu))


def _web(replicas: int, cpu: str = "500m", name: str = "web") -> shapes.Event:
    return deployment(name, replicas, cpu)


async def _used(story: Story) -> dict[str, str]:
    return (await story.recorded(quota_decisions.QuotaDecided))[-1].used["all"]


async def _failures(story: Story, binding_key: str) -> list[tuple[str, str]]:
    failed = await story.recorded(decisions.ScheduleFailed, binding_key)
    return [(failure.reason, failure.message.rpartition("request: ")[2]) for failure in failed]


async def test_workload_beyond_the_quota_waits_until_another_is_deleted(story: Story) -> None:
    await _begun(story, "1")
    await story.submit(_web(2))
    assert sum(story.placed(WEB).values()) == 2
    assert await _used(story) == {"cpu": "1"}
    await story.submit(_web(1, name="api"))
    assert story.placed(API) == {}
    assert await _failures(story, API) == [("QuotaExceeded", LIMIT.format("1500m", "1"))]
    await story.restart()
    await story.submit(deleted("web"))
    assert sum(story.placed(API).values()) == 1
    assert await _used(story) == {"cpu": "500m"}
    assert WEB not in story.worker.folds[keys.shard_of(WEB)].state.quota_claims


@pytest.mark.parametrize("others", [0, 1])
async def test_quota_that_is_created_again_at_once_shows_its_use(story: Story, others: int) -> None:
    await _begun(story, "1")
    await story.submit(*(quota(f"other{number}", "9") for number in range(others)), _web(2))
    decided = len(await story.recorded(quota_decisions.QuotaDecided))
    await story.submit(policies.ConfigurationDeleted(object=QUOTA), quota("all", "1"))
    assert len(await story.recorded(quota_decisions.QuotaDecided)) == decided + 1
    assert await _used(story) == {"cpu": "1"}
    await story.restart()
    await story.submit(policies.ConfigurationDeleted(object=QUOTA), deleted("web"))
    assert "all" not in (await story.recorded(quota_decisions.QuotaDecided))[-1].used


async def test_message_names_the_current_limit(story: Story) -> None:
    await _begun(story, "1")
    await story.submit(_web(1))
    await story.submit(_web(2, name="api"))
    expected = [("QuotaExceeded", LIMIT.format("1500m", "1"))]
    assert await _failures(story, API) == expected
    await story.submit(quota("all", "1100m"))
    expected.append(("QuotaExceeded", LIMIT.format("1500m", "1100m")))
    assert await _failures(story, API) == expected
    # Another sum is no reason for a decision: thousands of bindings may wait.
    await story.submit(_web(1, "600m"))
    assert await _used(story) == {"cpu": "600m"}
    assert await _failures(story, API) == expected


async def test_message_of_a_refused_template_names_the_current_limit(story: Story) -> None:
    await _begun(story, "1")
    await story.submit(_web(1))
    await story.submit(_web(1, "2"))
    await story.submit(quota("all", "1500m"))
    faults = [refusal.fault for refusal in await story.recorded(decisions.ClaimRefused)]
    assert [fault.rpartition("request: ")[2] for fault in faults] == [
        LIMIT.format("2", "1"),
        LIMIT.format("2", "1500m"),
    ]
    await story.submit(quota("all", "2"))
    assert await _used(story) == {"cpu": "2"}


async def test_scaling_beyond_the_quota_keeps_the_replicas_until_the_quota_grows(story: Story) -> None:
    await _begun(story, "1")
    await story.submit(_web(1))
    await story.submit(_web(3))
    assert sum(story.placed(WEB).values()) == 1
    assert await _failures(story, WEB) == [("QuotaExceeded", LIMIT.format("1500m", "1"))]
    await story.submit(quota("all", "1400m"))
    assert sum(story.placed(WEB).values()) == 1
    await story.submit(_web(2))
    assert sum(story.placed(WEB).values()) == 2
    await story.submit(_web(3), quota("all", "2"))
    assert sum(story.placed(WEB).values()) == 3
    assert await _used(story) == {"cpu": "1500m"}
    await story.submit(_web(1))
    assert await _used(story) == {"cpu": "500m"}


async def test_template_with_requests_beyond_the_quota_is_not_applied(story: Story) -> None:
    await _begun(story, "1")
    await story.submit(_web(1))
    await story.submit(_web(1, cpu="2"))
    assert [
        refused.fault.rpartition("request: ")[2] for refused in await story.recorded(decisions.ClaimRefused)
    ] == [LIMIT.format("2", "1")]
    assert (await story.recorded(decisions.BindingDeclared, WEB))[-1].requests == {"cpu": "500m"}
    await story.submit(quota("all", "2"))
    assert (await story.recorded(decisions.BindingDeclared, WEB))[-1].requests == {"cpu": "2"}
    assert await _used(story) == {"cpu": "2"}


async def test_each_limited_resource_counts_alone(story: Story) -> None:
    def limits(cpu: str, memory: str) -> shapes.Event:
        spec: Json = {"overall": {"cpu": cpu, "memory": memory}}
        return configuration(
            manifests.manifest(POLICIES, "FederatedResourceQuota", "all", "default", spec=spec)
        )

    def requesting(cpu: str, memory: str) -> shapes.Event:
        return applied(manifests.deployment("web", 1, "default", requests={"cpu": cpu, "memory": memory}))

    await _begun(story, "")
    await story.submit(limits("1", "1Gi"), requesting("1", "1Gi"))
    await story.submit(requesting("1", "2Gi"))
    (refused,) = await story.recorded(decisions.ClaimRefused)
    assert "exceeded for resource memory" in refused.fault
    # Less of a resource that is used beyond its limit, and more of another one, is allowed.
    await story.submit(limits("2", "500Mi"))
    await story.submit(requesting("2", "800Mi"))
    assert await _used(story) == {"cpu": "2", "memory": "800Mi"}


async def test_quota_counts_earlier_workloads_until_it_is_deleted(story: Story) -> None:
    await _begun(story, "")
    await story.submit(_web(4))
    await story.submit(quota("all", "1"))
    await story.submit(_web(4, cpu="501m"))
    assert await _used(story) == {"cpu": "2"}
    await story.submit(_web(5))
    assert sum(story.placed(WEB).values()) == 4
    await story.submit(policies.ConfigurationDeleted(object=QUOTA))
    assert sum(story.placed(WEB).values()) == 5


async def test_ledger_of_a_deleted_quota_ends_with_its_last_claim(story: Story) -> None:
    await _begun(story, "1")
    await story.submit(_web(2))
    state = story.worker.folds[keys.shard_of(keys.quota_key("default"))].state
    assert state.ledgers
    await story.submit(policies.ConfigurationDeleted(object=QUOTA), deleted("web"))
    assert not state.ledgers
    await story.submit(_web(2), quota("all", "2"))
    assert await _used(story) == {"cpu": "1"}
    await story.submit(policies.ConfigurationDeleted(object=QUOTA))
    await story.submit(deleted("web"))
    assert not state.ledgers
    assert not any(fold.state.quota_claims for fold in story.worker.folds)


async def test_declared_template_asks_for_nothing_while_a_newer_one_is_refused(story: Story) -> None:
    everywhere = policy("p", {"replicaScheduling": DUPLICATED}, selector())
    await story.submit(joined("member1"), capacity("member1"), everywhere, quota("all", "900m"))
    await story.submit(_web(1))
    await story.submit(_web(1, cpu="2"))
    await story.submit(joined("member2"), capacity("member2"), rebalancer("spread", ref("web")))
    assert story.placed(WEB) == {"member1": 1}
    assert {*await _failures(story, WEB)} == {("QuotaExceeded", LIMIT.format("2", "900m"))}
    await story.submit(quota("all", "4"))
    assert (await story.recorded(decisions.BindingDeclared, WEB))[-1].requests == {"cpu": "2"}
    assert sum(story.placed(WEB).values()) == 2
    assert await _used(story) == {"cpu": "4"}


async def test_each_of_two_workloads_decided_at_once_counts(story: Story) -> None:
    await _begun(story, "1")
    await story.submit(_web(2), _web(2, name="api"))
    assert sorted(sum(story.placed(binding_key).values()) for binding_key in (WEB, API)) == [0, 2]


async def test_message_shows_a_limit_of_any_size(story: Story) -> None:
    limit = f"-{'9' * 50}e40"
    await _begun(story, limit)
    await story.submit(_web(1))
    shown = f"-{'9' * 50}{'0' * 22}E"
    assert await _failures(story, WEB) == [("QuotaExceeded", LIMIT.format("500m", shown))]


async def test_request_of_a_workload_that_is_deleted_meanwhile_is_taken_back(story: Story) -> None:
    await _begun(story, "1")
    await story.write(_web(2))
    await story.worker.turn()
    await story.submit(deleted("web"))
    decided = await story.recorded(quota_decisions.QuotaDecided)
    assert [(verdict.by, verdict.fault) for decision in decided for verdict in decision.verdicts] == [
        (WEB, "")
    ]
    assert await _used(story) == {"cpu": "0"}
    assert WEB not in story.worker.folds[keys.shard_of(WEB)].state.quota_claims


async def test_eviction_frees_the_quota_of_unscheduled_replicas(story: Story) -> None:
    await _begun(story, "1")
    await story.submit(_web(2))
    await story.submit(tainted("member1", "NoExecute"), tainted("member2", "NoExecute"))
    assert await _used(story) == {"cpu": "0"}


async def test_restart_does_not_apply_the_change_of_a_lazy_policy(story: Story) -> None:
    await _begun(story, "")
    await story.submit(policy("p", on("member1"), selector(), activationPreference="Lazy"))
    await story.submit(_web(1), quota("all", "1"))
    # The restarted worker takes the change in the step in which it looks at the quotas again.
    await story.write(policy("p", on("member2"), selector(), activationPreference="Lazy"))
    await story.restart()
    assert story.placed(WEB) == {"member1": 1}
    await story.submit(_web(2, cpu="400m"))
    assert story.placed(WEB) == {"member2": 2}


async def test_quota_counts_placements_by_a_release_without_overall_quotas(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nothing(*_: object, **__: object) -> Outputs[None]:
        """Neither claim nor report anything."""
        yield from ()

    with monkeypatch.context() as former:
        former.setattr(release, "RELEASE", "0.5.0")
        former.setattr(overall_quotas, "admit", nothing)
        former.setattr(overall_quotas, "settle", nothing)
        await _begun(story, "1")
        await story.submit(_web(3))
    await story.restart()
    assert await _used(story) == {"cpu": "1500m"}
    await story.submit(_web(1, name="api"))
    assert await _failures(story, API) == [("QuotaExceeded", LIMIT.format("2", "1"))]
