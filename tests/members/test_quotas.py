"""ResourceQuotas in members: they refuse pods, count what the others use, and let refused pods in once it is free."""

from typing import Final

import msgspec
import pytest
from msgspec import structs

from engine.simulation import quotas, statuses, unmanaged
from engine.simulation.state import MemberState, Workload
from engine.works import quotas as quota_manifests
from engine.works import templates
from events import clusters, health, kube_objects, shapes
from events.json_values import Json, object_at
from events.kube_objects import KubeObject
from tests.builders import manifests
from tests.members import examples

NGINX: Final = examples.key_of("nginx")
OTHER: Final = examples.key_of("other")
QUOTA: Final = examples.key_of("small", "ResourceQuota")
_POD: Final = manifests.manifest("v1", "Pod", "single", "default", spec={"containers": [{"name": "c"}]})


def _quota(**hard: str) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "small", "namespace": "default"},
        "spec": {"hard": {name.replace("_", "."): text for name, text in hard.items()}},
    }


def _expression(operator: str, *values: str) -> Json:
    expression = {"scopeName": "PriorityClass", "operator": operator, "values": list(values)}
    return {"matchExpressions": [expression]}


def _deployment(name: str, replicas: int) -> Json:
    return manifests.deployment(name, replicas, "default", requests={"cpu": "50m"})


async def _write(stage: examples.Stage, value: Json) -> None:
    manifest = msgspec.Raw(msgspec.json.encode(value))
    await stage.members.write("member1", clusters.MemberObjectApplied(name="member1", manifest=manifest))
    await stage.settle()


def _state(stage: examples.Stage) -> MemberState:
    return stage.members.state_of("member1")


def _running(stage: examples.Stage, key: str) -> Workload:
    workload = unmanaged.running(_state(stage), key) or _state(stage).workloads.get(key)
    assert workload is not None
    return workload


def _status(stage: examples.Stage) -> Json:
    item = _state(stage).unmanaged[QUOTA]
    workload = unmanaged.workload_of(QUOTA, item)
    workload.template = templates.read(item.manifest)
    return statuses.status(_state(stage), workload)


async def test_pods_over_a_quota_are_not_created_until_it_allows_them() -> None:
    stage = examples.Stage()
    await stage.turn()
    await _write(stage, _quota(pods="3", requests_cpu="200m"))
    await _write(stage, _deployment("nginx", 5))
    assert (_running(stage, NGINX).ready, _running(stage, NGINX).pending) == (3, 0)
    assert _status(stage)["used"] == {"pods": "3", "requests.cpu": "150m"}
    shown: Json = {"status": statuses.status(_state(stage), _running(stage, NGINX))}
    failure = KubeObject(shown).condition("ReplicaFailure")
    assert (failure["status"], failure["reason"]) == ("True", "FailedCreate")
    assert str(failure["message"]).endswith(
        "exceeded quota: small, requested: pods=1, used: pods=3, limited: pods=3"
    )
    assert KubeObject(shown).condition("Available")["status"] == "False"
    await _write(stage, _quota(pods="9", requests_cpu="200m"))
    assert _running(stage, NGINX).ready == 4
    await _write(stage, _quota(pods="9"))
    assert _running(stage, NGINX).ready == 5
    shown = {"status": statuses.status(_state(stage), _running(stage, NGINX))}
    assert KubeObject(shown).condition("ReplicaFailure") == {}


async def test_freed_quota_is_used_by_refused_workloads() -> None:
    stage = examples.Stage()
    await stage.turn()
    await _write(stage, _quota(pods="3"))
    await _write(stage, _deployment("nginx", 3))
    await _write(stage, _deployment("other", 2))
    assert _running(stage, OTHER).ready == 0
    await _write(stage, _deployment("nginx", 1))
    assert (_running(stage, NGINX).ready, _running(stage, OTHER).ready) == (1, 2)
    deleted = clusters.MemberObjectDeleted(name="member1", object=examples.ref("other"))
    await stage.members.write("member1", deleted)
    assert _status(stage)["used"] == {"pods": "1"}


def _reference(value: Json) -> shapes.WorkloadRef:
    return kube_objects.read_head(msgspec.Raw(msgspec.json.encode(value))).reference


async def _propagate(stage: examples.Stage, value: Json, *, step: int = 1, overwrites: bool = False) -> None:
    ref = _reference(value)
    offset = await stage.submit_template(value, ref.binding_key)
    work = examples.applied(ref.name, None, kind=ref.kind, step=step, offset=offset)
    await stage.work(structs.replace(work, template=ref, overwrites=overwrites))
    await stage.settle()


async def test_restart_keeps_propagated_pods_that_exceed_a_later_quota() -> None:
    stage = examples.Stage()
    await stage.turn()
    await stage.work(examples.applied("nginx", 3, offset=await stage.template("nginx", 3)))
    await stage.settle()
    await _propagate(stage, _quota(pods="2"), step=2)
    rebuilt = stage.restarted()
    number = rebuilt.log.last_number()
    await rebuilt.settle()
    assert _running(stage, NGINX).ready == _running(rebuilt, NGINX).ready == 3
    assert examples.reports(await rebuilt.events_since(number)) == []
    await _write(rebuilt, _deployment("other", 1))
    assert _running(rebuilt, OTHER).ready == 0


@pytest.mark.parametrize("is_propagated", [True, False])
async def test_bare_pods_are_counted_after_a_restart(is_propagated: bool) -> None:
    stage = examples.Stage()
    await stage.turn()
    await (_propagate if is_propagated else _write)(stage, _quota(pods="3"))
    await _write(stage, _POD)
    await _write(stage, _deployment("nginx", 3))
    rebuilt = stage.restarted()
    await rebuilt.settle()
    await _write(rebuilt, _deployment("nginx", 4))
    assert (_running(stage, NGINX).ready, _running(rebuilt, NGINX).ready) == (2, 2)


async def test_orphaned_pods_count_for_a_quota() -> None:
    stage = examples.Stage()
    await stage.turn()
    await _write(stage, _quota(pods="3"))
    await _write(stage, {**_deployment("nginx", 2), "kind": "ReplicaSet"})
    ref = shapes.WorkloadRef(api_version="apps/v1", kind="ReplicaSet", name="nginx", namespace="default")
    await stage.members.write(
        "member1", clusters.MemberObjectDeleted(name="member1", object=ref, orphans=True)
    )
    await stage.settle()
    assert _status(stage)["used"] == {"pods": "2"}


async def test_bare_pod_that_the_control_plane_takes_over_is_no_longer_counted() -> None:
    stage = examples.Stage()
    await stage.turn()
    await _write(stage, _quota(pods="3"))
    await _write(stage, _POD)
    await _propagate(stage, _POD, overwrites=True)
    rebuilt = stage.restarted()
    await rebuilt.settle()
    assert _status(stage)["used"] == _status(rebuilt)["used"] == {"pods": "0"}


async def test_preserved_quota_limits_no_pods_once_a_client_has_deleted_it() -> None:
    stage = examples.Stage()
    await stage.turn()
    await _propagate(stage, _quota(pods="2"))
    await stage.work(structs.replace(examples.removed("small", step=2, preserved=True), key=QUOTA))
    await _write(stage, _deployment("nginx", 3))
    assert _running(stage, NGINX).ready == 2
    deleted = clusters.MemberObjectDeleted(name="member1", object=_reference(_quota()))
    await stage.members.write("member1", deleted)
    await stage.settle()
    assert _running(stage, NGINX).ready == 3


async def test_propagated_workload_over_a_quota_is_unhealthy_and_stays_so_after_a_restart() -> None:
    stage = examples.Stage()
    await stage.turn()
    await _propagate(stage, _quota(pods="2"))
    offset = await stage.template("nginx", 3)
    await stage.work(examples.applied("nginx", 3, step=2, offset=offset))
    number = stage.log.last_number()
    await stage.settle()
    report = examples.reports(await stage.events_since(number))[-1]
    assert isinstance(report, health.WorkloadReported)
    assert (report.replicas, report.ready, report.healthy) == (2, 2, False)
    rebuilt = stage.restarted()
    number = rebuilt.log.last_number()
    await rebuilt.settle()
    assert (_running(rebuilt, NGINX).ready, _running(rebuilt, NGINX).pending) == (2, 0)
    assert examples.reports(await rebuilt.events_since(number)) == []
    await rebuilt.work(structs.replace(examples.removed("small", step=3), key=QUOTA))
    await rebuilt.settle()
    assert _running(rebuilt, NGINX).ready == 3


async def test_use_of_a_propagated_quota_is_reported_when_clients_create_and_delete_objects() -> None:
    stage = examples.Stage()
    await stage.turn()
    value = {**_quota(), "spec": {"hard": {"count/configmaps": "5"}}}
    offset = await stage.submit_template(value, QUOTA)
    work = examples.applied("small", None, kind="ResourceQuota", offset=offset)
    await stage.work(structs.replace(work, reading=shapes.Reading(values=(".used",))))
    await stage.settle()
    number = stage.log.last_number()
    await _write(stage, manifests.manifest("v1", "ConfigMap", "own", "default"))
    await stage.members.write(
        "member1", clusters.MemberObjectDeleted(name="member1", object=examples.ref("own", "ConfigMap"))
    )
    await stage.settle()
    reports = examples.reports(await stage.events_since(number))
    used = [report.values[".used"] for report in reports if isinstance(report, health.WorkloadReported)]
    assert used == ['{"count/configmaps":"1"}', '{"count/configmaps":"0"}']


async def test_pod_without_a_limited_resource_is_refused() -> None:
    stage = examples.Stage()
    await stage.turn()
    await _write(stage, _quota(limits_memory="1Gi", pods="9"))
    await _write(stage, _deployment("nginx", 1))
    assert _running(stage, NGINX).ready == 0
    message = quotas.refusal_of(_state(stage), _running(stage, NGINX))
    assert message.endswith("failed quota: small: must specify limits.memory")


async def test_quota_with_scopes_counts_the_pods_in_all_of_them() -> None:
    stage = examples.Stage()
    await stage.turn()
    quota = _quota(pods="1")
    quota["spec"] = {**object_at(quota, "spec"), "scopes": ["BestEffort", "NotTerminating"]}
    await _write(stage, quota)
    await _write(stage, _deployment("other", 2))  # requests cpu
    await _write(stage, manifests.deployment("nginx", 2, "default"))
    assert [(_running(stage, key).admitted, key) for key in (OTHER, NGINX)] == [(2, OTHER), (1, NGINX)]
    assert object_at(_status(stage), "used") == {"pods": "1"}


@pytest.mark.parametrize(
    ("scope", "is_counted"),
    [
        ({"scopes": ["BestEffort"]}, False),
        ({"scopes": ["NotBestEffort"]}, True),
        ({"scopes": ["Terminating"]}, True),
        ({"scopes": ["NotTerminating"]}, False),
        ({"scopes": ["CrossNamespacePodAffinity"]}, False),
        ({"scopes": ["PriorityClass"]}, True),
        ({"scopeSelector": _expression("In", "high", "low")}, True),
        ({"scopeSelector": _expression("NotIn", "high")}, False),
        ({"scopeSelector": _expression("Exists")}, True),
        ({"scopeSelector": _expression("DoesNotExist")}, False),
    ],
)
def test_scopes_select_pods_as_in_kubernetes(scope: Json, is_counted: bool) -> None:  # a case
    value = _quota(pods="1")
    value["spec"] = {**object_at(value, "spec"), **scope}
    quota = quota_manifests.read(msgspec.json.encode(value))
    container = {"name": "c", "resources": {"requests": {"cpu": "1"}}}
    spec: Json = {"containers": [container], "priorityClassName": "high", "activeDeadlineSeconds": 5}
    pod = manifests.manifest("v1", "Pod", "single", "default", spec=spec)
    assert quota is not None
    assert quota.counts(templates.read(msgspec.json.encode(pod)).pod) == is_counted
