"""A Job runs no more pods at once than have to succeed, as Karmada counts its replicas."""

import json

import pytest

from engine.objects import workloads


@pytest.mark.parametrize(
    ("spec", "replicas"),
    [
        ({}, 1),
        ({"parallelism": 5}, 5),
        ({"parallelism": 5, "completions": 2}, 2),
        ({"parallelism": 2, "completions": 5}, 2),
        ({"completions": 5}, 1),
        ({"parallelism": 0, "completions": 5}, 0),
    ],
)
def test_job_has_the_replicas_that_run_at_once(spec: dict[str, int], replicas: int) -> None:
    manifest = json.dumps({"apiVersion": "batch/v1", "kind": "Job", "spec": spec}).encode()
    assert workloads.size("batch/v1", "Job", manifest).replicas == replicas
