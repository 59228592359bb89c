"""`reballast schedule`: one answer per input line, even for invalid ones."""

import io
import json
from pathlib import Path
from typing import Any

import pytest

from engine.cli import failures, schedule
from tests import vectors

Json = dict[str, Any]

MEMBER: Json = {
    "metadata": {"name": "a", "unknown": 1},
    "status": {
        "apiEnablements": [{"groupVersion": "apps/v1", "resources": [{"kind": "Deployment"}]}],
        "resourceSummary": {"allocatable": {"cpu": "4", "pods": 10}},
    },
}
QUESTION: Json = {
    "id": "q",
    "clusters": [MEMBER],
    "spec": {"resource": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}, "replicas": 2},
}


def answers(*lines: str | bytes, explained: bool = False) -> list[Json]:
    source = io.BytesIO(
        b"".join((line.encode() if isinstance(line, str) else line) + b"\n" for line in lines)
    )
    sink = io.BytesIO()
    schedule.answer_all(source, sink, explained=explained)
    return [json.loads(line) for line in sink.getvalue().splitlines()]


def test_answer_has_the_format_of_the_vectors() -> None:
    assert answers(json.dumps(QUESTION)) == [
        {
            "id": "q",
            "trigger": "PlacementChanged",
            "clusters": [{"name": "a", "replicas": 2}],
            "affinityName": "",
            "condition": "True/Success",
            "errors": [],
            "retry": False,
        }
    ]


def test_whole_recorded_case_is_accepted() -> None:
    case = vectors.load(vectors.groups("schedule")[0])[0]
    line = b'{"id":"x","input":' + bytes(case.input) + b"}"
    plain, whole = answers(bytes(case.input), line)
    assert whole == {"id": "x", **plain}


def test_explanation_is_included_on_request() -> None:
    [answer] = answers(json.dumps(QUESTION), explained=True)
    [group] = answer["explanation"]["groups"]
    assert group["clusters"] == [
        {"name": "a", "score": 0, "allocatable": 10, "available": 10, "selected": True, "replicas": 2}
    ]


@pytest.mark.parametrize(
    ("line", "field", "reason"),
    [
        ("{", "", "not readable as JSON"),
        ("[]", "", "Expected `object`"),
        (b"\xff\xfe", "", "not readable as JSON"),
        ('{"spec":' * 50_000, "", "recursion"),
        (json.dumps({"clusters": []}), "", "missing required field `spec`"),
        (json.dumps(QUESTION | {"clusters": {}}), "clusters", "Expected `array`"),
        (
            json.dumps(QUESTION | {"clusters": [{"metadata": {"name": 3}}]}),
            "clusters[0].metadata.name",
            "got `int`",
        ),
        (json.dumps(QUESTION).replace('"4"', '"4 cores"'), "clusters[0]", "'4 cores'"),
        (json.dumps(QUESTION).replace('"replicas": 2', '"replicas": -2'), "spec.replicas", ">= 0"),
        (json.dumps(QUESTION).replace('"replicas": 2', '"replicas": 2.5'), "spec.replicas", "got `float`"),
        (
            json.dumps(QUESTION | {"status": {"lastScheduledTime": "2026-01-01T00:00:00"}}),
            "status.lastScheduledTime",
            "timezone",
        ),
    ],
)
def test_malformed_line_is_reported_and_does_not_stop_the_stream(
    line: str | bytes, field: str, reason: str
) -> None:
    first, refused, last = answers(json.dumps(QUESTION), line, json.dumps(QUESTION))
    assert first == last
    assert refused["error"]["line"] == 2
    assert refused["error"]["field"] == field
    assert reason in refused["error"]["reason"]


def test_contradictory_placements_are_decided() -> None:
    both: Json = {"clusterAffinity": {}, "clusterAffinities": [{"affinityName": "g"}]}
    spread: Json = {"spreadConstraints": [{"spreadByField": "region", "minGroups": 1}]}
    rule: Json = {"targetCluster": {}, "weight": -3}
    negative: Json = {"replicaScheduling": {"weightPreference": {"staticWeightList": [rule]}}}
    lines = [
        json.dumps(QUESTION | {"spec": QUESTION["spec"] | {"placement": placement}})
        for placement in (both, spread, negative)
    ]
    assert ["error" in answer for answer in answers(*lines)] == [False] * 3


def test_line_over_the_limit_is_refused_and_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedule, "LINE_BYTES_MAX", 2_000)
    refused, answered = answers(" " * 9_000 + json.dumps(QUESTION), json.dumps(QUESTION))
    assert "longer than 2000 bytes" in refused["error"]["reason"]
    assert answered["id"] == "q"


def test_exit_code_shows_refused_lines(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    file = tmp_path / "questions.jsonl"
    file.write_text(json.dumps(QUESTION) + "\n\n" + json.dumps(QUESTION) + "\n")
    schedule.schedule(file)
    assert capfdbinary.readouterr().out.count(b"True/Success") == 2
    file.write_text("{\n")
    with pytest.raises(SystemExit) as stopped:
        schedule.schedule(file)
    assert stopped.value.code == 1
    with pytest.raises(failures.Failure, match="missing: No such file or directory") as failed:
        schedule.schedule(tmp_path / "missing")
    assert failed.value.code == failures.FAILED
