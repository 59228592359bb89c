"""Events of override policies: one per policy and work, up to the first policy that could not be applied."""

import pytest

from engine.http.kube.kubernetes_events.of_bindings import Overrides
from events import health, shapes, works

KEY = "default/web-deployment"
WEB = shapes.WorkloadRef(api_version="apps/v1", kind="Deployment", name="web", namespace="default")


def ref(name: str, namespace: str = "default") -> shapes.OverrideRef:
    kind = "OverridePolicy" if namespace else "ClusterOverridePolicy"
    return shapes.OverrideRef(kind=kind, name=name, namespace=namespace, offset=1, digest="d", rules=(0,))


def work(step: int, *overrides: shapes.OverrideRef) -> works.WorkApplied:
    return works.WorkApplied(
        cluster="member1",
        key=KEY,
        template=WEB,
        shard=1,
        offset=1,
        digest="d",
        term=1,
        step=step,
        overrides=overrides,
    )


def report(step: int, fault: str = "") -> health.WorkloadReported:
    return health.WorkloadReported(cluster="member1", key=KEY, term=1, step=step, fault=fault)


def events_of(*data: shapes.Event) -> list[tuple[bool, str]]:
    overrides = Overrides()
    return [occurrence for event in data for occurrence in overrides.take(event)]


EVERYWHERE = (True, "Apply cluster override policy(all) for cluster(member1) succeed.")
HERE = "Apply override policy(default/here) for cluster(member1)"


def test_each_policy_is_reported_with_the_first_report_of_its_work() -> None:
    events = events_of(work(1, ref("all", ""), ref("here")), report(1), report(1))
    assert events == [EVERYWHERE, (True, f"{HERE} succeed.")]


def test_work_without_policies_and_unreported_work_cause_no_event() -> None:
    assert events_of(work(1), report(1), work(2, ref("here")), work(3), report(3)) == []


@pytest.mark.parametrize(
    ("fault", "events"),
    [
        (
            "OverridePolicy default/here: plaintext: why",
            [EVERYWHERE, (False, f"{HERE} failed. plaintext: why")],
        ),
        (
            "ClusterOverridePolicy all: plaintext: why",
            [(False, "Apply cluster override policy(all) for cluster(member1) failed. plaintext: why")],
        ),
        (
            "overrides leave '-1' replicas",
            [EVERYWHERE, (False, f"{HERE} failed. overrides leave '-1' replicas")],
        ),
    ],
)
def test_failed_override_is_reported_for_its_policy(fault: str, events: list[tuple[bool, str]]) -> None:
    assert events_of(work(1, ref("all", ""), ref("here")), report(1, fault)) == events
