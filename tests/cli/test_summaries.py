"""One-line texts about records and explanations, as tables and pages show them."""

import pytest

from engine.http import summaries
from engine.placement.capacity import UNLIMITED
from engine.placement.explanations import ClusterExplanation, Step


def test_exclusion_reasons_of_a_cluster_are_listed() -> None:
    excluded = ClusterExplanation(name="a", terminating=True, failed=("x",))
    assert summaries.failures(excluded) == ["the cluster is being removed", "x"]
    assert summaries.failures(ClusterExplanation(name="a")) == []


def test_division_names_the_new_or_the_remaining_replicas() -> None:
    assert summaries.division(Step(kind="scale up", seats=6)) == "scale up by 6 replicas"
    assert summaries.division(Step(kind="scale down", seats=1)) == "scale down to 1 replica"
    assert summaries.division(Step(kind="duplicated", seats=0)) == "the object in each cluster"
    assert summaries.division(Step(kind="of a later release", seats=2)) == "of a later release, 2 replicas"


def test_event_is_summarised() -> None:
    data: dict[str, object] = {
        "key": "default/foo-deployment",
        "mode": "Fresh",
        "generation": 2,
        "clusters": [{"name": "member1", "replicas": 2}, {"name": "member2"}],
        "available": {"member1": 3, "member2": 4},
        "isFinal": True,
    }

    shown = summaries.fields(data, "default/foo-deployment")
    assert shown == "mode=Fresh clusters=[member1:2, member2] available={member1:3, member2:4} isFinal=true"
    removed: dict[str, object] = {"name": "member1", "key": "m", "effect": "NoExecute", "managedFields": []}
    assert summaries.fields(removed, "member1") == "name=member1 key=m effect=NoExecute"
    assert summaries.event_name("io.reballast.schedule-decided.v1") == "schedule-decided"


def test_summary_shows_what_each_cluster_reports() -> None:
    running = {"cluster": "member1", "replicas": 2, "ready": 1, "generation": 3, "digest": "5d41"}
    data: dict[str, object] = {"members": [running, {"cluster": "member2", "applied": False}]}
    assert summaries.fields(data, "") == "members=[member1:2(ready=1), member2(applied=false)]"


def test_summary_shows_instants_as_times_and_keeps_durations() -> None:
    data: dict[str, object] = {"atMs": 1_716_630_591_120, "graceMs": 30_000, "farMs": 10**30}
    assert summaries.fields(data, "") == f"at=2024-05-25T09:49:51Z graceMs=30000 farMs={10**30}"


def test_summary_of_a_template_shows_its_replicas_and_images() -> None:
    pods = {"spec": {"containers": [{"image": "nginx:1.27"}, {"name": "unfinished"}]}}
    manifest = {"kind": "Deployment", "spec": {"replicas": 3, "template": pods}}
    assert (
        summaries.fields({"manifest": manifest, "expects": 0}, "") == "created replicas=3 images=[nginx:1.27]"
    )
    assert summaries.fields({"manifest": {"kind": "Secret"}, "expects": 7}, "") == ""


@pytest.mark.parametrize(("free", "text"), [(None, ""), (0, "0"), (12, "12"), (UNLIMITED, "")])
def test_free_replicas_are_shown_only_if_they_were_estimated(free: int | None, text: str) -> None:
    assert summaries.free_replicas(ClusterExplanation(name="a", allocatable=free)) == text
