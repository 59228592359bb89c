"""Commands against a server that carries out as many requests as it can already."""

import asyncio
import json
from collections.abc import Callable, Sequence

import pytest

from engine.cli import main, server_location
from engine.http.plans import jobs
from engine.plans import questions
from events.records import Record
from tests.api.servers import TOKEN, LogPlanner, on_a_port
from tests.api.story_records import written
from tests.builders import inputs
from tests.deciders.story import Story


async def joined(names: Sequence[str]) -> list[Record]:
    """Return the records of an engine that these clusters have joined."""
    story = Story()
    await story.submit(*map(inputs.joined, names))
    return await written(story)


def test_drill_waits_for_a_server_with_fewer_cores(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    predict = LogPlanner.predict

    async def slow(self: LogPlanner, question: questions.Question, progress: Callable[[int], None]) -> bytes:
        await asyncio.sleep(0.1)
        return await predict(self, question, progress)

    monkeypatch.setattr(LogPlanner, "predict", slow)
    monkeypatch.setattr(jobs, "RUNNING_MAX", 1)
    with on_a_port(asyncio.run(joined(names := ("one", "two", "three")))) as served:
        monkeypatch.setenv(server_location.SERVER_VARIABLE, served.url)
        monkeypatch.setenv(server_location.TOKEN_VARIABLE, TOKEN)
        assert main.run(["drill", "--json", "--by", "cluster"]) == 0, capsys.readouterr().err
    outcomes = json.loads(capsys.readouterr().out)
    assert sorted(outcome["outage"]["name"] for outcome in outcomes) == sorted(names)
