"""Malformed objects and times, and limits of size and depth."""

import json

import msgspec
import pytest

from events import imported_placements, keys, limits, policies, records, specs, topics
from events.validation import verdicts
from tests.builders import inputs, log_records
from tests.builders.inputs import policy
from tests.builders.log_records import Partition, envelope
from tests.builders.manifests import config_map, deployment, manifest, raw
from tests.events.verdicts.deployment import FOO_MANIFEST, KEY, applied, content

Applied = type[specs.TemplateApplied | specs.RebalancerApplied | policies.PolicyApplied]
A_POLICY = "kind: a PropagationPolicy of policy.karmada.io/v1alpha1 is a policy"
A_TEMPLATE = "kind: a Deployment of apps/v1 is a template"


@pytest.mark.parametrize(
    ("applied_as", "raw", "reason"),
    [
        (specs.TemplateApplied, msgspec.Raw(b"[]"), "manifest: Expected `object`, got `array`"),
        (specs.TemplateApplied, msgspec.Raw(b"{}"), "apiVersion: required"),
        (specs.TemplateApplied, raw(manifest("apps/v1", "", "a")), "kind: required"),
        (
            specs.TemplateApplied,
            raw(manifest("v1", "Secret", "")),
            "metadata.name: required",
        ),
        (
            specs.TemplateApplied,
            raw(manifest("v1", "Secret", "a/b")),
            "metadata.name: 'a/b' is no object",
        ),
        (
            specs.TemplateApplied,
            raw(deployment("foo", -1, "default")),
            "spec.replicas: expected a whole number >= 0",
        ),
        (specs.TemplateApplied, policy("p").manifest, A_POLICY),
        (specs.RebalancerApplied, raw(FOO_MANIFEST), A_TEMPLATE),
        (policies.PolicyApplied, raw(FOO_MANIFEST), A_TEMPLATE),
        (policies.NamespaceApplied, policy("p").manifest, A_POLICY),
        (policies.InterpreterApplied, raw(FOO_MANIFEST), A_TEMPLATE),
    ],
)
def test_malformed_object_is_refused(applied_as: Applied, raw: msgspec.Raw, reason: str) -> None:
    data = applied_as(manifest=raw)
    topic = applied_as.event_type.topic
    partition = Partition(topic, keys.partition_of(KEY, topics.TOPICS[topic].partitions))
    record = records.record(topic, partition.fold.state.partition, KEY, *content(data))
    assert log_records.words(partition.take(record)).startswith(f"refused: {reason}")
    assert not partition.fold.state.heads


def test_cluster_policy_has_no_namespace() -> None:
    partition = Partition("policies")
    partition.taken(policy("p", namespace=""))
    assert len(partition.fold.state.heads) == 1


def test_object_over_the_size_limit_is_refused() -> None:
    data = inputs.applied(config_map("big", "default", a="x" * limits.OBJECT_BYTES_MAX))
    partition = Partition.of(inputs.applied(config_map("big", "default")))
    record = records.record("specs", partition.fold.state.partition, "default/big-configmap", *content(data))
    assert log_records.words(partition.take(record)).startswith("refused: manifest: 10486")


def test_nesting_over_the_depth_limit_is_refused() -> None:
    def nested(levels: int) -> specs.TemplateApplied:
        value: object = 1
        for _ in range(levels):
            value = [value]
        return inputs.applied(manifest("v1", "ConfigMap", "deep", "default", data=value))

    partition = Partition.of(nested(1))
    partition.taken(nested(limits.DEPTH_MAX))
    refusal = partition.refused(nested(limits.DEPTH_MAX + 1))
    assert refusal == f"refused: data: nested deeper than {limits.RECORD_DEPTH_MAX} levels"


@pytest.mark.parametrize("field", ["placement", "other"])
def test_nesting_of_an_imported_placement_is_limited(field: str) -> None:
    """Where a decoder fails depends on the stack of the process, so verdicts would differ."""

    def imported(levels: int) -> specs.TemplateApplied:
        nested = "[" * levels + "]" * levels
        text = (
            json.dumps({"placement": f'{{"x": {nested}}}'})[1:-1]
            if field == "placement"
            else f'"x": {nested}'
        )
        annotations = {imported_placements.ANNOTATION: f'{{"clusters": {{}}, {text}}}'}
        return inputs.applied(
            manifest("v1", "ConfigMap", "deep", "default", metadata={"annotations": annotations})
        )

    partition = Partition.of(imported(1))
    partition.taken(imported(limits.DEPTH_MAX - 1))
    assert f"nested deeper than {limits.DEPTH_MAX} levels" in partition.refused(imported(limits.DEPTH_MAX))


def test_invalid_time_is_refused_and_an_absent_one_is_zero() -> None:
    partition = Partition.of(applied())
    assert partition.refused(applied(), envelope(time="yesterday")).startswith("refused: time: 'yesterday'")
    assert partition.taken(applied(), envelope(time="")).at_ms == 0


def test_refusal_keeps_the_envelope() -> None:
    partition = Partition.of(applied())
    verdict = partition.submit(applied(expects=7), envelope("9", "/a"))
    assert isinstance(verdict, verdicts.Refused)
    assert verdict.envelope is not None
    assert (verdict.envelope.source, verdict.envelope.id) == ("/a", "9")
