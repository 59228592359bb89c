"""Reconciliation: decisions and reports from works and observed objects, and what autoscalers control."""

import time
from typing import Literal

from hypothesis import given
from hypothesis import strategies as st

from engine.agent import messages, reconciliation
from engine.agent.ledger import Identity
from engine.agent.reconciliation import Applied, Apply, Entry, Forget, Observed, Remove
from engine.agent.statuses import ObjectState
from engine.agent.watch_receivers import Scalers
from events.kube_objects import KubeObject
from events.shapes import WorkloadRef
from tests.speed import slowness

REF = WorkloadRef(api_version="apps/v1", kind="Deployment", name="web", namespace="default")
Reported = Literal["applied", "removed", "suspended"]


def work(
    step: int,
    state: Reported = "applied",
    *,
    digest: str = "d1",
    replicas: int | None = 2,
    preserved: bool = False,
) -> messages.Work:
    ref = REF if state == "applied" else None
    return messages.Work(
        key="default/web-deployment",
        state=state,
        term=1,
        step=step,
        template=ref,
        digest=digest if ref else "",
        replicas=replicas if ref else None,
        preserved=preserved,
    )


def applied(entry: Entry) -> Entry:
    """Mark the work of an entry as applied, as the shell does."""
    now = entry.work
    assert now.template is not None
    entry.applied = Applied(
        ref=now.template,
        term=now.term,
        step=now.step,
        content=reconciliation.content_of(now),
        uid="u",
        fields="f",
    )
    entry.seen = Observed(
        uid="u", version="1", fields="f", state=ObjectState(replicas=2, ready=1, healthy=False)
    )
    return entry


def taken(entry: Entry | None, work: messages.Work) -> Entry:
    updated = reconciliation.take(entry, work)
    assert updated is not None
    return updated


def test_work_is_applied_once() -> None:
    entry = taken(None, work(1))
    assert reconciliation.decide(entry) == Apply(is_drift=False)
    assert reconciliation.decide(applied(entry)) == "settled"


def test_older_and_equal_works_are_ignored() -> None:
    entry = taken(None, work(5))
    assert reconciliation.take(entry, work(4)) is None
    assert reconciliation.take(entry, work(5)) is None


def test_same_content_with_a_newer_version_is_reported_and_not_applied() -> None:
    entry = taken(applied(taken(None, work(1))), work(2))
    assert reconciliation.decide(entry) == "settled"
    report = reconciliation.report(entry)
    assert report is not None
    assert (report.step, report.replicas, report.ready, report.healthy) == (2, 2, 1, False)


def test_scaled_work_is_applied_and_reports_name_the_former_one_until_then() -> None:
    entry = taken(applied(taken(None, work(1))), work(2, replicas=3))
    assert reconciliation.decide(entry) == Apply(is_drift=False)
    report = reconciliation.report(entry)
    assert report is not None
    assert report.step == 1


def test_changed_or_removed_object_is_drift() -> None:
    for seen in (Observed(), Observed(uid="other", fields="f"), Observed(uid="u", fields="g")):
        entry = applied(taken(None, work(1)))
        entry.seen = seen
        assert reconciliation.decide(entry) == Apply(is_drift=True)


def test_suspended_work_is_left_unchanged_until_the_next_work() -> None:
    entry = applied(taken(None, work(1)))
    for step in (2, 3):
        entry = taken(entry, work(step, "suspended"))
        entry.seen = Observed(uid="u", fields="g")
        assert reconciliation.decide(entry) == "settled"
        assert entry.work.template == REF
    entry = taken(entry, work(4, replicas=9))
    assert reconciliation.decide(entry) == Apply(is_drift=True)


def test_removed_work_is_deleted_even_if_its_application_is_unknown() -> None:
    entry = taken(taken(None, work(1)), work(2, "removed"))
    assert reconciliation.decide(entry) == Remove(REF, preserved=False, is_last=True)
    assert reconciliation.gone_report(entry) is None
    reconciliation.removed(entry)
    assert reconciliation.decide(entry) == Forget()
    assert reconciliation.gone_report(entry) == messages.GoneReport(key=entry.work.key, term=1, step=2)


def test_preserved_removal_is_marked_preserved() -> None:
    entry = taken(applied(taken(None, work(1))), work(2, "removed", preserved=True))
    assert reconciliation.decide(entry) == Remove(REF, preserved=True, is_last=True)


def test_versions_that_are_no_numbers_are_not_compared() -> None:
    numbers = [Observed(uid="u", version=str(version)) for version in (9, 10, 2**64)]
    assert reconciliation.is_older(numbers[0], numbers[1])
    assert reconciliation.is_older(numbers[1], numbers[2])
    for version in ("", "a1", "9" * 5_000):
        other = Observed(uid="u", version=version)
        assert not reconciliation.is_older(numbers[0], other)
        assert not reconciliation.is_older(other, numbers[0])


def test_fault_is_reported_once_until_a_newer_work() -> None:
    entry = taken(None, work(1))
    entry.fault = "not ours"
    report = reconciliation.report(entry)
    assert report is not None
    assert (report.fault, report.step) == ("not ours", 1)
    entry.reported = report
    assert reconciliation.report(entry) is None
    entry = taken(entry, work(2))
    assert entry.fault == ""


@given(st.permutations([work(1), work(2, replicas=3), work(3, "suspended"), work(4, digest="d2"), work(6)]))
def test_newest_work_wins_in_any_order(works: list[messages.Work]) -> None:
    entry: Entry | None = None
    for update in works:
        entry = reconciliation.take(entry, update) or entry
    assert entry is not None
    assert entry.work == work(6)


def scaler(uid: str, target: str) -> KubeObject:
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": target}
    return KubeObject(
        {"metadata": {"uid": uid, "namespace": "default"}, "spec": {"scaleTargetRef": reference}}
    )


def test_object_is_scaled_while_any_autoscaler_names_it() -> None:
    changes: list[Identity] = []
    scalers = Scalers(changes.append)
    web, api = (("apps", "Deployment", "default", name) for name in ("web", "api"))
    scalers.listed([scaler("a", "web"), scaler("b", "web")])
    scalers.changed(scaler("a", "web"), is_gone=True)
    assert scalers.scales(web)
    scalers.changed(scaler("b", "api"), is_gone=False)
    assert (scalers.scales(web), scalers.scales(api)) == (False, True)
    scalers.listed([scaler("c", "web")])
    assert (scalers.scales(web), scalers.scales(api)) == (True, False)
    scalers.changed(scaler("c", "web"), is_gone=True)
    assert not scalers.scales(web)
    assert {web, api} == set(changes)


def test_cost_of_a_lookup_does_not_grow_with_the_autoscalers() -> None:
    scalers = Scalers(lambda _: None)
    scalers.listed([scaler(f"u{number}", f"web{number}") for number in range(10_000)])
    began_s = time.process_time()
    assert all(scalers.scales(("apps", "Deployment", "default", f"web{number}")) for number in range(10_000))
    used_s = time.process_time() - began_s
    assert used_s < 0.1 * slowness()
