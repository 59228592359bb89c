"""Statuses of simulated members: from the template's annotation, the replicas, and the paths of the work."""

import msgspec
import pytest

from engine.deciders import interpretation
from engine.simulation import cluster, reports, state, statuses
from engine.works import templates
from events import health, shapes
from events.json_values import objects_at
from tests.members import examples

JOB = '{"job": {"id": "a1", "state": "FAILED"}}'
READING = shapes.Reading(
    values=("{.job.id}", ".job.nothing", ".readyReplicas"),
    health=shapes.HealthRule(path=".job.state", values=("RUNNING",)),
)


def _template(status: object) -> templates.Template:
    manifest = {"metadata": {"annotations": {templates.STATUS: status}}, "spec": {}}
    return templates.read(msgspec.json.encode(manifest))


def _reported(template: templates.Template, reading: shapes.Reading | None) -> health.WorkloadReported:
    member = examples.new_state(startup_ms=0)
    work = msgspec.structs.replace(examples.applied("flink", 2), reading=reading)
    cluster.apply_work(member, work, 0, template=template)
    (report,) = (
        report.data for report in _reports(member) if isinstance(report.data, health.WorkloadReported)
    )
    return report


def _reports(member: state.MemberState) -> list[reports.Report]:
    return cluster.advance(member, 0)


def test_report_has_the_values_requested_by_the_work() -> None:
    report = _reported(_template(JOB), READING)
    assert report.values == {"{.job.id}": "a1", ".readyReplicas": "2"}
    assert not report.healthy, "its kind's rule counts, not its replicas"
    assert _reported(_template(JOB.replace("FAILED", "RUNNING")), READING).healthy


def test_unrequested_values_are_not_reported() -> None:
    report = _reported(_template(JOB), None)
    assert (report.values, report.healthy) == ({}, True)


def test_health_rule_without_a_simulated_value_counts_as_met_by_ready_replicas() -> None:
    assert READING.health is not None
    assert _reported(templates.EMPTY, READING).healthy
    assert not _reported(_template('{"job": {}}'), READING).healthy


@pytest.mark.parametrize(
    ("path", "healthy"), [(".spec.size", True), (".spec.other", True), (".status.most", False)]
)
def test_health_rule_reads_the_simulated_counts(path: str, *, healthy: bool) -> None:
    rules = (
        shapes.HealthRule(path=".observedGeneration", values=(), at_least=".metadata.generation"),
        shapes.HealthRule(path=".updatedReplicas", values=(), at_least=path),
    )
    reading = shapes.Reading(replicas="spec.size", alternatives=(rules,))
    assert _reported(_template('{"most": 3}'), reading).healthy is healthy


@pytest.mark.parametrize("startup_ms", [0, 1_000])
def test_members_judge_a_kind_with_a_built_in_interpreter_by_its_rollout(startup_ms: int) -> None:
    interpreter = interpretation.Interpreters().get("apps.kruise.io/v1alpha1", "CloneSet")
    assert interpreter is not None
    member = examples.new_state(startup_ms=startup_ms)
    applied = examples.applied("web", 2)
    ref = msgspec.structs.replace(applied.template, api_version="apps.kruise.io/v1alpha1", kind="CloneSet")
    work = msgspec.structs.replace(applied, template=ref, reading=interpreter.reading)
    cluster.apply_work(member, work, 0, template=templates.EMPTY)
    (report,) = (
        report.data for report in _reports(member) if isinstance(report.data, health.WorkloadReported)
    )
    assert (report.replicas, report.healthy) == (2, not startup_ms)


@pytest.mark.parametrize("text", ["", "{", "[1]", "null", "[" * 10_000])
def test_invalid_status_annotation_is_ignored(text: str) -> None:
    member = examples.new_state(startup_ms=0)
    cluster.apply_work(member, examples.applied("flink", 1), 0, template=_template(text))
    (workload,) = member.workloads.values()
    assert statuses.status(member, workload)["replicas"] == 1


@pytest.mark.parametrize("annotations", [None, {}])
def test_template_without_annotations_is_read(annotations: object) -> None:
    containers = [{"name": "main", "resources": {"requests": {"cpu": "500m"}}}]
    spec = {"template": {"spec": {"containers": containers}}}
    manifest = {"metadata": {"annotations": annotations}, "spec": spec}
    assert templates.read(msgspec.json.encode(manifest)).amounts != templates.EMPTY.amounts


@pytest.mark.parametrize("sort", [{"a": 1}, 7, None, ["LoadBalancer"]])
def test_template_is_read_even_if_its_spec_has_a_field_named_type(sort: object) -> None:
    containers = [{"name": "main", "resources": {"requests": {"cpu": "500m"}}}]
    spec = {"type": sort, "template": {"spec": {"containers": containers}}}
    manifest = {"apiVersion": "example.com/v1", "kind": "App", "spec": spec}
    template = templates.read(msgspec.json.encode(manifest))
    assert (template.amounts != templates.EMPTY.amounts, template.is_balanced) == (True, False)


@pytest.mark.parametrize(("api_version", "mode"), [("v1", "VIP"), ("networking.k8s.io/v1", None)])
def test_address_has_a_mode_only_in_a_service(api_version: str, mode: str | None) -> None:
    kind = "Service" if api_version == "v1" else "Ingress"
    manifest = {"apiVersion": api_version, "kind": kind, "spec": {"type": "LoadBalancer"}}
    member = examples.new_state(startup_ms=0)
    applied = examples.applied("web", None)
    ref = msgspec.structs.replace(applied.template, api_version=api_version, kind=kind)
    work = msgspec.structs.replace(applied, template=ref)
    cluster.apply_work(member, work, 0, template=templates.read(msgspec.json.encode(manifest)))
    (workload,) = member.workloads.values()
    (address,) = objects_at(statuses.status(member, workload), "loadBalancer", "ingress")
    assert address.get("ipMode") == mode
