"""Every decision that a real control plane's scheduler made in the recordings is made again in its shadow."""

import itertools
from collections import Counter

import msgspec
import pytest

from engine.observer.report import differing
from engine.observer.shadow import KNOWN, RACE, SAME, UNEXPLAINED, Shadow
from engine.placement import parsing
from events.observations import DecisionCompared
from tests import recordings


@pytest.mark.slow
@pytest.mark.parametrize("recording", recordings.names())
def test_recorded_decisions_are_explained(recording: str) -> None:
    shadow = Shadow()
    decisions: list[DecisionCompared] = []
    for change in recordings.changes(recording):
        compared = recordings.compare(shadow, change)
        if compared is not None:
            decisions.append(compared)
    assert len(decisions) > 100
    counts = Counter(decision.verdict for decision in decisions)
    assert not counts[UNEXPLAINED], counts
    # In the calm recordings Karmada's caches have caught up before each move, so races are rare.
    assert counts[RACE] <= len(decisions) * (0.001 if recording.startswith("calm") else 0.01), counts
    assert counts[SAME] + counts[KNOWN] + counts[RACE] == len(decisions)
    assert all(
        decision.reasons
        for decision in decisions
        if decision.verdict != SAME and (decision.observed.clusters or decision.computed.clusters)
    )


@pytest.mark.skipif(not recordings.ARE_OWN, reason="about one decision in the recording of this folder")
def test_race_is_explained_from_both_states() -> None:
    """A taint of tok-265 was removed at 31466; the decision written at 31467 was made with it."""
    name = "mail-075-deployment"
    shadow = Shadow(("ResourceBinding", "red", name))
    for change in recordings.changes("calm-1"):
        if change.version > 31_467:
            break
        if change.head.kind == "Cluster" or change.head.metadata.name == name:
            recordings.compare(shadow, change)
    explanation = shadow.explanation
    assert explanation is not None
    assert explanation.explanation is not None
    assert (explanation.compared.verdict, explanation.clusters, explanation.latest) == (RACE, 31_464, 31_466)
    assert explanation.compared.why == "decided with the clusters of 31464, before tok-265 changed"
    (then,) = [cluster for cluster in explanation.explanation.groups[0].clusters if cluster.name == "tok-265"]
    assert then.failed == ("cluster(s) had untolerated taint {cluster.karmada.io/not-ready:NoSchedule}",)
    (now,) = differing(explanation.compared)
    assert (now.cluster, now.failed) == ("tok-265", ())


def test_decision_that_comes_after_hundreds_of_later_changes_of_clusters_is_not_compared() -> None:
    shadow = Shadow()
    changes = list(itertools.islice(recordings.changes(recordings.of_scenario("calm")), 4_000))
    clusters = [change for change in changes if change.head.kind == "Cluster"]
    value = msgspec.json.decode(clusters[-1].manifest)
    for version in range(10_000, 10_600):
        value["metadata"]["resourceVersion"] = str(version)
        recordings.compare(shadow, recordings.change("MODIFIED", value))
    bindings = [change for change in changes if change.head.kind == "ResourceBinding"]
    assert not any(recordings.compare(shadow, change) for change in bindings)


def test_repeated_changes_are_no_decisions() -> None:
    shadow, twice = Shadow(), Shadow()
    once: list[DecisionCompared] = []
    again: list[DecisionCompared] = []
    for change, _ in zip(recordings.changes(recordings.of_scenario("calm")), range(4_000), strict=False):
        once += filter(None, [recordings.compare(shadow, change)])
        again += filter(None, [recordings.compare(twice, change), recordings.compare(twice, change)])
    assert once
    assert again == once


def test_unreadable_cluster_stops_no_other_comparison() -> None:
    shadow = Shadow()
    changes = list(itertools.islice(recordings.changes(recordings.of_scenario("calm")), 4_000))
    compared = 0
    for change in changes:
        compared += recordings.compare(shadow, change) is not None
        if change.head.kind != "Cluster" or change.version > changes[1_000].version:
            continue
        value = msgspec.json.decode(change.manifest)
        value["metadata"]["name"] += "-unreadable"
        value["status"] = {"resourceSummary": {"allocatable": {"cpu": "1e1.5"}}}
        with pytest.raises(parsing.UnreadableError):
            recordings.compare(shadow, recordings.change("MODIFIED", value))
    assert compared


def test_decision_of_karmada_is_not_compared_from_a_version_before_those_of_the_own_scheduler() -> None:
    """Between its first and its second decision, each binding names the own scheduler."""
    shadow, usual = Shadow(own_scheduler="own"), Shadow()
    decisions: Counter[tuple[str, str, str]] = Counter()
    own_versions: dict[tuple[str, str, str], int] = {}
    later = 0
    for change, _ in zip(recordings.changes(recordings.of_scenario("calm")), range(8_000), strict=False):
        key = change.object_key
        decisions[key] += recordings.compare(usual, change) is not None
        if key[0] == "ResourceBinding" and not change.is_gone and decisions[key] == 1:
            value = msgspec.json.decode(change.manifest)
            value["spec"]["schedulerName"] = "own"
            assert recordings.compare(shadow, recordings.change(change.type, value)) is None
            own_versions[key] = change.version
        elif (compared := recordings.compare(shadow, change)) is not None and key in own_versions:
            assert compared.basis > own_versions[key]
            later += 1
    assert later


def test_clusters_with_versions_that_are_no_numbers_stop_nothing() -> None:
    shadow = Shadow()
    changes = list(itertools.islice(recordings.changes(recordings.of_scenario("calm")), 4_000))
    value = msgspec.json.decode(next(change for change in changes if change.head.kind == "Cluster").manifest)
    opaque: list[msgspec.Raw] = []
    for version in ("", "none", "1.5", "9" * 5_000):
        value["metadata"] |= {"name": f"opaque{len(opaque)}", "resourceVersion": version}
        opaque.append(msgspec.Raw(msgspec.json.encode(value)))
    compared = 0
    for change in changes:
        compared += recordings.compare(shadow, change) is not None
        if change.head.kind == "Cluster":
            assert [shadow.take("Cluster", manifest) for manifest in opaque] == [None] * 4
    assert compared
