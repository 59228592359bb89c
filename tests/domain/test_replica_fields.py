"""The field that has the number of replicas, by kind."""

import pytest

from engine.domain import replica_fields


@pytest.mark.parametrize(
    ("kind", "declared", "path"),
    [
        ("apps/v1 Deployment", "", "spec.replicas"),
        ("batch/v1 Job", "", "spec.parallelism"),
        ("batch.example.io/v1 Job", "", "spec.replicas"),
        ("flink.example.io/v1 FlinkJob", ".spec.job.size", "spec.job.size"),
    ],
)
def test_path_of_the_replicas_of_a_kind(kind: str, declared: str, path: str) -> None:
    api_version, _, name = kind.partition(" ")
    assert ".".join(replica_fields.path_of(api_version, name, declared)) == path


def test_counts_are_set_in_a_copy() -> None:
    head = {"apiVersion": "batch/v1", "kind": "Job"}
    job: dict[str, object] = {**head, "spec": {"parallelism": 1, "completions": 4, "suspend": True}}
    counted = replica_fields.with_counts(job, "", 3, 6)
    assert counted == {**head, "spec": {"parallelism": 3, "completions": 6, "suspend": True}}
    assert replica_fields.with_counts(job, "", None, None) == job


def test_labels_of_a_work_take_precedence() -> None:
    value: dict[str, object] = {"metadata": {"name": "web", "labels": {"a": "1", "b": "1"}}}
    labelled = replica_fields.with_labels(value, {"b": "2"})
    assert labelled == {"metadata": {"name": "web", "labels": {"a": "1", "b": "2"}}}
    assert replica_fields.with_labels(value, {}) is value
