"""Producers' events become valid records; invalid ones are refused before they are sent."""

from typing import Any

import msgspec
import pytest

from events import (
    catalogue,
    clusters,
    decisions,
    health,
    kube_objects,
    links,
    policies,
    records,
    shapes,
    specs,
)
from events.client import statements
from tests.builders import inputs, log_records, manifests
from tests.golden.samples import table

TAINT = clusters.Taint(key="maintenance", effect="NoExecute")
WORKLOAD = shapes.WorkloadRef(api_version="apps/v1", kind="Deployment", name="web", namespace="default")

INPUTS = [entry.type for entry in catalogue.EVENT_TYPES if entry.topic in statements.INPUT_TOPICS]


def record_of(data: shapes.Event, event_id: str = "", at_ms: int | None = None) -> records.Record:
    statement = statements.Statement(data=data, id=event_id, at_ms=at_ms)
    return statements.record_of(statement, "/pipelines/shop", 1_716_630_591_120, "new-1")


@pytest.mark.parametrize(
    ("data", "topic", "key"),
    [
        (inputs.deployment("web"), "specs", "default/web-deployment"),
        (specs.TemplateDeleted(template=WORKLOAD), "specs", "default/web-deployment"),
        (specs.RebalancerDeleted(name="all"), "specs", "workloadrebalancer:all"),
        (policies.NamespaceDeleted(name="default"), "policies", "namespace:default"),
        (clusters.ClusterJoined(name="member1"), "clusters", "member1"),
        (clusters.ClusterTainted(name="member1", taint=TAINT), "clusters", "member1"),
        (clusters.ClusterTainted(name="member1", taint=TAINT, expects=7), "clusters", "member1"),
        (clusters.ClusterLeft(name="member1", expects=7), "clusters", "member1"),
        (
            health.WorkloadGone(key="default/web-deployment", cluster="member1", term=1, step=2),
            "health",
            "default/web-deployment",
        ),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, shapes.Event) else str(value),
)
def test_event_is_written_under_its_key_to_its_topic(data: shapes.Event, topic: str, key: str) -> None:
    record = record_of(data)
    assert (record.topic, record.key) == (topic, key)
    assert log_records.record(data).partition == record.partition


@pytest.mark.parametrize("name", INPUTS)
def test_valid_event_of_each_input_type_becomes_a_record(name: str) -> None:
    data = table.SAMPLES[name]
    entry = data.event_type
    assert record_of(data).topic == entry.topic
    if hasattr(data, "expects"):
        for expects in (7, None):
            assert record_of(msgspec.structs.replace(data, expects=expects)).topic == entry.topic


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (clusters.ClusterTainted(name="member1", taint=clusters.Taint(key="k", effect="Never")), "effect: "),
        (clusters.ClusterTainted(name="member1", taint=TAINT, expects=0), "name: the cluster is no member"),
        (specs.TemplateApplied(manifest=msgspec.Raw(b'{"kind":"Deployment"}')), "apiVersion: required"),
        (
            policies.PolicyApplied(manifest=manifests.raw(manifests.deployment("foo"))),
            "kind: a Deployment of apps/v1 is a template",
        ),
        (inputs.applied(manifests.config_map("a" * 2_000_000)), "manifest: 2000"),
        (clusters.ClusterLeft(name="member1", expects=-1), "expects: "),
        (
            policies.PolicyDeleted(policy=shapes.PolicyRef(kind="OverridePolicy", name="eu", namespace="a")),
            "does not exist",
        ),
        (specs.TemplateDeleted(template=WORKLOAD, expects=0), "does not exist"),
    ],
)
def test_invalid_event_is_refused_with_field_and_reason(data: shapes.Event, words: str) -> None:
    with pytest.raises(kube_objects.Refusal) as caught:
        record_of(data)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ({"at_ms": 1_716_630_591_120_000}, "at_ms: 1716630591120000 is outside of the years 1 to 9999"),
        ({"at_ms": -(10**15)}, "at_ms: -1000000000000000 is outside"),
        ({"id": "build-\ud800"}, "data: 'build-\\ud800' has a surrogate"),
        ({"data": clusters.ClusterJoined(name="m\ud800")}, "data: 'm\\ud800' has a surrogate"),
    ],
    ids=["microseconds", "ancient", "id", "name"],
)
def test_event_that_no_record_can_contain_is_refused(statement: dict[str, Any], words: str) -> None:
    event: dict[str, Any] = {"data": inputs.deployment("foo"), **statement}
    with pytest.raises(kube_objects.Refusal) as caught:
        statements.record_of(statements.Statement(**event), "/pipelines/shop", 0, "new-1")
    assert words in str(caught.value)


@pytest.mark.parametrize(
    "data",
    [
        links.RescheduleAnswered(
            rebalancer="r", uid="u", generation=1, workload=WORKLOAD, result="Successful"
        ),
        decisions.BindingWithdrawn(key="k", reason="r"),
    ],
)
def test_engine_events_are_refused(data: shapes.Event) -> None:
    with pytest.raises(TypeError, match="only the engine writes"):
        record_of(data)


def test_given_id_is_kept() -> None:
    assert record_of(inputs.deployment("foo"), "build-1042", at_ms=0).headers["ce_id"] == "build-1042"


def test_id_with_a_time_is_derived_from_the_content() -> None:
    first = record_of(inputs.deployment("foo"), at_ms=1)
    assert record_of(inputs.deployment("foo"), at_ms=1) == first
    others = [record_of(inputs.deployment("foo"), at_ms=2), record_of(inputs.deployment("foo", 4), at_ms=1)]
    assert first.headers["ce_id"] not in {other.headers["ce_id"] for other in others}


def test_id_without_a_time_is_new_and_the_time_is_now() -> None:
    headers = record_of(inputs.deployment("foo")).headers
    assert (headers["ce_id"], headers["ce_time"]) == ("new-1", "2024-05-25T09:49:51.120Z")
