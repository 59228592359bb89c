"""Validation of workloads."""

import pytest

from engine.kubeapi.admission import built_in_defaults
from engine.kubeapi.admission.rules import workloads
from events.json_values import Json
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
