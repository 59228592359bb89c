"""CronFederatedHPAs that could not be carried out are refused when they are written."""

from typing import Final

import httpx
import pytest

from events.json_values import Json
from tests.api.kube.client import api
from tests.builders.manifests import manifest

GROUP: Final = "autoscaling.karmada.io/v1alpha1"
SCALERS: Final = f"/apis/{GROUP}/namespaces/default/cronfederatedhpas"
DEPLOYMENT: Final[Json] = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "one"}


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        ({"schedule": "* * *"}, "spec.rules[0].schedule"),
        ({"schedule": "@every 5m"}, "intervals are not supported"),
        ({"schedule": "* sat-30 * * *"}, "spec.rules[0].schedule"),
        ({"schedule": f"{'9' * 5_000} * * * *"}, "spec.rules[0].schedule"),
        ({"timeZone": "Mars/Phobos"}, "unknown time zone Mars/Phobos"),
        ({"targetReplicas": None}, "targetReplicas cannot be nil if you want to scale Deployment"),
        ({"targetReplicas": -1}, "targetReplicas should be larger than or equal to 0"),
        ({"name": ""}, "must have 1 to 32 characters"),
        ({"name": "n" * 33}, "must have 1 to 32 characters"),
        ({"successfulHistoryLimit": 0}, "must be from 1 to 32"),
        ({"failedHistoryLimit": 33}, "must be from 0 to 32"),
    ],
)
async def test_rule_that_cannot_be_carried_out_is_refused(rule: Json, reason: str) -> None:
    async with api() as (client, _):
        await _refused(client, DEPLOYMENT, [rule], reason)


async def test_rules_of_one_name_are_refused() -> None:
    async with api() as (client, _):
        await _refused(client, DEPLOYMENT, [{}, {}], 'spec.rules[1].name: Duplicate value: "up"')


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        ({}, "targetMinReplicas and targetMaxReplicas cannot be nil at the same time"),
        ({"targetMinReplicas": 0}, "targetMinReplicas should be larger than 0"),
        ({"targetMaxReplicas": -1}, "targetMaxReplicas should be larger than 0"),
        ({"targetMinReplicas": 3, "targetMaxReplicas": 2}, "larger than or equal to targetMinReplicas"),
    ],
)
async def test_limits_that_cannot_be_set_are_refused(rule: Json, reason: str) -> None:
    async with api() as (client, _):
        await _refused(client, {"apiVersion": GROUP, "kind": "FederatedHPA", "name": "all"}, [rule], reason)


async def test_other_kinds_of_the_group_are_no_targets() -> None:
    async with api() as (client, _):
        target: Json = {"apiVersion": GROUP, "kind": "CronFederatedHPA", "name": "other"}
        await _refused(client, target, [{}], "only support FederatedHPA")


async def _refused(client: httpx.AsyncClient, target: Json, rules: list[Json], reason: str) -> None:
    """Check that a scaler with these rules, completed by a name, a schedule and replicas, is refused."""
    usual: Json = {"name": "up", "schedule": "* * * * *", "targetReplicas": 1}
    spec: Json = {"scaleTargetRef": target, "rules": [{**usual, **rule} for rule in rules]}
    body = manifest(GROUP, "CronFederatedHPA", "cron", namespace="default", spec=spec)
    answered = await client.post(SCALERS, json=body)
    assert answered.status_code == 403
    assert reason in answered.json()["message"]
