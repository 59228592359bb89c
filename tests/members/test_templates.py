"""Template parsing in members, and the names of pods."""

import re

import msgspec
import pytest

from engine.simulation import cluster, lists
from engine.works import templates
from tests.members import examples


def test_pods_of_a_deployment_are_named_as_by_kubernetes() -> None:
    member = examples.new_state()
    cluster.apply_work(member, examples.applied("nginx", 2), 0, template=examples.template())
    cluster.advance(member, 0)
    names = [pod.name for pod in lists.pods_of(member.spec.name, member.workloads[examples.key_of("nginx")])]
    assert len(set(names)) == 2
    for name in names:
        assert re.fullmatch(r"nginx-[bcdfghjklmnpqrstvwxz2-9]{10}-[bcdfghjklmnpqrstvwxz2-9]{5}", name)


def test_pods_of_a_stateful_set_are_numbered() -> None:
    member = examples.new_state()
    work = examples.applied("db", 2, kind="StatefulSet")
    cluster.apply_work(member, work, 0)
    cluster.advance(member, 0)
    pods = lists.pods_of(member.spec.name, member.workloads[work.key])
    assert [pod.name for pod in pods] == ["db-0", "db-1"]


def test_pod_without_capacity_is_pending() -> None:
    member = examples.new_state(pods="1", startup_ms=0)
    cluster.apply_work(member, examples.applied("nginx", 2), 70)
    cluster.advance(member, 70)
    first, second = lists.pods_of(member.spec.name, member.workloads[examples.key_of("nginx")])
    assert (first.phase, first.ready_ms) == ("Running", 70)
    assert (second.phase, second.ready_ms) == ("Pending", None)


def test_field_order_does_not_replace_pods_and_another_image_does() -> None:
    spec = {"containers": [{"name": "a", "image": "b"}]}
    first_manifest = {
        "spec": {"replicas": 1, "template": {"metadata": {"labels": {"app": "a"}}, "spec": spec}}
    }
    other = {"spec": {"template": {"spec": spec, "metadata": {"labels": {"app": "a"}}}, "replicas": 9}}
    first, second = (templates.read(msgspec.json.encode(value)) for value in (first_manifest, other))
    assert (first.digest, first.labels) == (second.digest, second.labels)
    assert examples.template(image="c").digest != examples.template(image="d").digest


@pytest.mark.parametrize(
    "nulls", [{"metadata": None}, {"metadata": {"labels": None}}, {"spec": {"priorityClassName": None}}]
)
def test_null_fields_of_a_pod_template_are_absent(nulls: dict[str, dict[str, object] | None]) -> None:
    containers = {"containers": [{"resources": {"requests": {"cpu": "250m"}}}]}
    pod = {**nulls, "spec": {**(nulls.get("spec") or {}), **containers}}
    manifest = {"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"template": pod}}
    read = templates.read(msgspec.json.encode(manifest))
    assert read.amounts == (("cpu", 250_000_000), ("pods", 10**9))
    assert (read.labels, read.priority_class) == ({}, "")


def test_custom_kind_is_read_by_its_pod_template() -> None:
    container = {"resources": {"requests": {"cpu": "250m"}}}
    rollout = {"kind": "Rollout", "spec": {"template": {"spec": {"containers": [container]}}}}
    assert templates.read(msgspec.json.encode(rollout)).amounts == (("cpu", 250_000_000), ("pods", 10**9))


@pytest.mark.parametrize(
    "manifest",
    [
        b"{}",
        b"[]",
        b"not json",
        b'{"spec": null}',
        b'{"spec": {"template": 1}}',
        b'{"spec": {"template": {"spec": {"containers": [{"resources": {"requests": {"cpu": "many"}}}]}}}}',
        b'{"spec": {"template": ' + b"[" * 100_000 + b"}}",
    ],
)
def test_unreadable_template_requests_nothing(manifest: bytes) -> None:
    assert templates.read(manifest) == templates.EMPTY


@pytest.mark.parametrize(
    "odd", [b'{"number":1e999}', b'{"number":' + b"9" * 4_500 + b"}", b'{"text":"\xff"}']
)
def test_template_is_read_without_its_unreadable_fields(odd: bytes) -> None:
    containers = {"containers": [{"resources": {"requests": {"cpu": "250m"}}}]}
    manifest = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "spec": {"template": {"spec": containers}},
        "status": {},
    }
    readable = templates.read(msgspec.json.encode(manifest))
    beside = templates.read(msgspec.json.encode({**manifest, "status": msgspec.Raw(odd)}))
    within = templates.read(
        msgspec.json.encode({**manifest, "spec": {"template": {"spec": containers, "odd": msgspec.Raw(odd)}}})
    )
    assert readable.amounts == (("cpu", 250_000_000), ("pods", 10**9))
    assert readable == beside == within
