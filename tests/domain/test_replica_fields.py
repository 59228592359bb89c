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
    job: dict[str, object] = {"spec": {"parallelism": 1, "completions": 4, "suspend": True}}
    path = replica_fields.path_of("batch/v1", "Job")
    counted = replica_fields.with_counts(job, path, 3, 6)
    assert counted == {"spec": {"parallelism": 3, "completions": 6, "suspend": True}}
    assert replica_fields.with_counts(job, path, None, None) == job
