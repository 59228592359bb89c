"""Validation of workloads."""

from collections.abc import Mapping

import pytest

from engine.kubeapi.admission import built_in_defaults
from engine.kubeapi.admission.rules import pods, workloads
from events.json_values import Json, object_at
from events.kube_objects import KubeObject
from tests.builders.manifests import STATEFUL_SET, manifest


@pytest.mark.parametrize(
    ("zone", "words"),
    [
        ("Mars/Phobos", "unknown time zone Mars/Phobos"),
        ("", "timeZone must be nil or non-empty string"),
        (
            "local",
            "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones",
        ),
    ],
)
def test_unknown_time_zone_of_a_cron_job_is_refused(zone: str, words: str) -> None:
    assert _errors(zone) == [f'Invalid value: "{zone}": {words}']


def test_known_time_zone_of_a_cron_job_is_taken() -> None:
    assert _errors(None) == _errors("Europe/Berlin") == []


def _errors(zone: str | None) -> list[str]:
    spec: Json = {"schedule": "0 9 * * *", "timeZone": zone}
    causes = workloads.cron_job(KubeObject({"spec": spec}), None)
    return [cause.message for cause in causes if cause.field == "spec.timeZone"]


@pytest.mark.parametrize(
    ("mode", "parallelism", "is_accepted"),
    [("Indexed", 5, True), ("Indexed", 2, False), ("NonIndexed", 5, False)],
)
def test_indexed_job_is_scaled_by_both_numbers(mode: str, parallelism: int, is_accepted: bool) -> None:
    before: Json = {"completionMode": mode, "completions": 3, "parallelism": 3}
    after: Json = {**before, "completions": 5, "parallelism": parallelism}
    causes = workloads.job(KubeObject({"spec": after}), KubeObject({"spec": before}))
    assert (not [cause for cause in causes if cause.field == "spec.completions"]) == is_accepted


_TEMPLATE: Json = {
    "metadata": {"labels": {"a": "b"}},
    "spec": {"containers": [{"name": "main", "image": "x"}]},
}
_SPREAD: Json = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": []}}


@pytest.mark.parametrize(
    ("metadata", "spec", "is_accepted"),
    [
        ({"labels": {"c": "d"}, "annotations": {"e": "f"}}, {}, True),
        ({}, {"nodeSelector": {"zone": "a"}, "tolerations": [{"operator": "Exists"}]}, True),
        ({}, {"schedulingGates": [{"name": "a"}]}, True),
        ({}, {"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}}}, True),
        ({}, {"affinity": _SPREAD}, False),
        ({"finalizers": ["a/b"]}, {}, False),
        ({}, {"containers": [{"name": "main", "image": "y"}]}, False),
        ({}, {"priorityClassName": "high"}, False),
    ],
)
def test_suspended_job_changes_where_its_pods_may_run(metadata: Json, spec: Json, is_accepted: bool) -> None:
    template: Json = {
        "metadata": {**object_at(_TEMPLATE, "metadata"), **metadata},
        "spec": {**object_at(_TEMPLATE, "spec"), **spec},
    }
    for old, new in ((_TEMPLATE, template), (template, _TEMPLATE)):
        suspended, resumed = ({"template": old, "suspend": is_held} for is_held in (True, False))
        # A queueing controller resumes the Job in the same write.
        for is_held in (True, False):
            after = {"template": new, "suspend": is_held}
            assert ("spec.template" not in _changed(suspended, after)) == is_accepted
            assert "spec.template" in _changed(resumed, after)


@pytest.mark.parametrize("field", ["podFailurePolicy", "successPolicy", "backoffLimitPerIndex", "managedBy"])
def test_policies_of_a_job_are_immutable(field: str) -> None:
    before, after = ({"template": _TEMPLATE, "suspend": True, field: value} for value in ("a", "b"))
    assert _changed(before, after) == [f"spec.{field}"]


def _changed(before: Mapping[str, object], after: Mapping[str, object]) -> list[str]:
    """Return the fields of a Job that must not change so."""
    causes = workloads.job(KubeObject({"spec": after}), KubeObject({"spec": before}))
    return [cause.field for cause in causes if "immutable" in cause.message]


@pytest.mark.parametrize(
    ("resource", "needs_limit"),
    [
        ("cpu", False),
        ("kubernetes.io/batch-cpu", False),
        ("nvidia.com/gpu", True),
        ("hugepages-2Mi", True),
    ],
)
def test_requests_of_resources_without_overcommitment_need_limits(resource: str, needs_limit: bool) -> None:
    container: Json = {"name": "main", "image": "nginx", "resources": {"requests": {resource: "1"}}}
    causes = pods.of_template({"spec": {"containers": [container]}}, "spec.template")
    assert any(cause.field.endswith(".limits") for cause in causes) == needs_limit


@pytest.mark.parametrize(("volume", "messages"), [("data", []), ("other", ['Not found: "other"'])])
def test_pods_of_a_stateful_set_mount_its_claims(volume: str, messages: list[str]) -> None:
    labels: Json = {"app": "db"}
    main: Json = {
        "name": "main",
        "image": "postgres",
        "volumeMounts": [{"name": volume, "mountPath": "/data"}],
    }
    spec: Json = {
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [main]}},
        "volumeClaimTemplates": [{"metadata": {"name": "data"}}],
    }
    value = built_in_defaults.with_defaults(KubeObject(manifest(*STATEFUL_SET, "db", spec=spec)))
    assert [cause.message for cause in workloads.stateful_set(value, None)] == messages
