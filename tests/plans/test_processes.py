"""The process of the plans: it keeps the engine as of a number, shares it between questions, and is replaced."""

import asyncio
import os
import signal
import sqlite3
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager, suppress
from pathlib import Path

import msgspec
import pytest
from msgspec import structs

from engine.bench import inputs
from engine.log import sqlite, sqlite_table
from engine.plans.predictions import Prediction
from engine.plans.questions import Failure, Input, PlanError, Question
from engine.process import installation
from engine.process.log_locations import LogLocation
from engine.process.plans.remote import PlanProcesses
from engine.text_lines import Lines
from events import keys, topics

pytestmark = pytest.mark.slow

BINDINGS = 20


@asynccontextmanager
async def planning(
    directory: Path, *, simulated: bool = True, idle_s: float = 120.0
) -> AsyncGenerator[PlanProcesses]:
    """Plans on a log in which Deployments run in two clusters, without a process that writes it."""
    members = inputs.members()
    async with installation.opened(directory, members) as running:
        await running.log.append([inputs.policy(), *map(inputs.deployment, range(BINDINGS))])
        await running.await_idle()
    planned = members if simulated else ()
    async with aclosing(PlanProcesses(LogLocation(str(directory)), planned, list, idle_s)) as planner:
        yield planner


def binding_key(index: int) -> str:
    return keys.binding_key("Deployment", "default", inputs.name_of(index))


async def predicted(planner: PlanProcesses, question: Question) -> Prediction:
    answer = await planner.predict(question, lambda _: None)
    return msgspec.json.decode(answer, type=Prediction)


def placed(running: installation.Installation, name: str) -> int:
    """Return the replicas of a Deployment that the running engine has placed."""
    key = keys.binding_key("Deployment", "default", name)
    return sum(dict(running.worker.folds[keys.shard_of(key)].state.bindings[key].clusters).values())


def tainted() -> Question:
    return Question(began_ms=installation.clock_ms(), inputs=(Input(record=inputs.taint("member1")),))


async def test_predictions_from_one_number_are_independent(tmp_path: Path) -> None:
    async with planning(tmp_path) as planner:
        questions = [tainted() for _ in range(3)]
        predictions = await asyncio.gather(*(predicted(planner, question) for question in questions))
        assert [len(prediction.moved) for prediction in predictions] == [BINDINGS] * 3
        nothing = await predicted(planner, Question(began_ms=installation.clock_ms()))
        assert (nothing.number, nothing.changed) == (predictions[0].number, [])


async def test_changes_that_happen_anyway_are_predicted_by_another_process(tmp_path: Path) -> None:
    async with planning(tmp_path) as planner:
        log = await sqlite.SqliteLog.open(tmp_path)
        await log.append([inputs.taint("member1")])
        await log.aclose()
        new = Question(began_ms=installation.clock_ms(), inputs=(Input(record=inputs.deployment(BINDINGS)),))
        prediction = await predicted(planner, new)
        assert [change.key for change in prediction.changed] == [binding_key(BINDINGS)]
        assert sorted(prediction.unrelated) == sorted(map(binding_key, range(BINDINGS)))


async def test_prediction_includes_records_appended_since_the_last_one(tmp_path: Path) -> None:
    async with planning(tmp_path) as planner:
        assert (await predicted(planner, tainted())).workloads == BINDINGS
        log = await sqlite.SqliteLog.open(tmp_path)
        await log.append([inputs.deployment(BINDINGS)])
        await log.aclose()
        assert (await predicted(planner, tainted())).workloads == BINDINGS + 1


async def test_process_follows_a_log_that_grows_and_reads_no_earlier_record_again(tmp_path: Path) -> None:
    async with planning(tmp_path, simulated=False) as planner:
        first = await predicted(planner, tainted())
        await asyncio.to_thread(damage, tmp_path)
        log = await sqlite.SqliteLog.open(tmp_path)
        for index in range(3):
            await log.append([inputs.deployment(BINDINGS + index)])
            prediction = await predicted(planner, tainted())
            assert (prediction.number, prediction.workloads) == (
                first.number + index + 1,
                BINDINGS + index + 1,
            )
            assert len(prediction.moved) == BINDINGS + index + 1
        await log.aclose()
        earlier = structs.replace(tainted(), number=first.number)
        with pytest.raises(PlanError, match="checksum"):
            await predicted(planner, earlier)


def damage(directory: Path) -> None:
    """Remove snapshots, and damage the first step of each shard."""
    for snapshot in directory.glob("snapshot-*"):
        snapshot.unlink()
    connection = sqlite3.connect(directory / "log.sqlite")
    slots = [sqlite_table.slot_of(topics.DECISIONS, shard) for shard in range(topics.SHARDS)]
    with connection:
        connection.executemany(
            "UPDATE records SET value = ? WHERE slot = ? AND offset = 0", [(b"{}", slot) for slot in slots]
        )
    connection.close()


async def test_process_without_questions_ends_and_another_answers_the_next(tmp_path: Path) -> None:
    async with planning(tmp_path, idle_s=0.1) as planner:
        for _ in range(2):
            assert len((await predicted(planner, tainted())).moved) == BINDINGS
            keeper = planner.keeper
            assert keeper is not None
            assert await asyncio.to_thread(keeper.process.wait) == 0


async def test_engine_decides_while_a_plan_is_made_in_another_process(tmp_path: Path) -> None:
    members = inputs.members()
    async with installation.opened(tmp_path, members) as running:
        await running.log.append([inputs.policy(), *map(inputs.deployment, range(BINDINGS))])
        await running.await_idle()
        async with aclosing(PlanProcesses(LogLocation(str(tmp_path)), members, list)) as planner:
            plan = asyncio.create_task(predicted(planner, tainted()))
            decided = 0
            while not plan.done():
                decided += 1
                await running.log.append([inputs.deployment(0, replicas=3 + decided)])
                await running.await_idle()
                assert placed(running, inputs.name_of(0)) == 3 + decided
            assert (await plan).workloads == BINDINGS
            assert planner.keeper is not None
            assert planner.keeper.process.pid != os.getpid()
    # The start of the process alone takes longer than several decisions.
    assert decided > 2


async def test_unknown_cluster_fails_the_prediction_and_not_the_process(tmp_path: Path) -> None:
    async with planning(tmp_path) as planner:
        question = Question(began_ms=installation.clock_ms(), failures=(Failure(member="nowhere"),))
        with pytest.raises(PlanError, match="nowhere"):
            await predicted(planner, question)
        assert len((await predicted(planner, tainted())).moved) == BINDINGS


async def test_killed_process_is_replaced(tmp_path: Path) -> None:
    async with planning(tmp_path) as planner:
        await predicted(planner, tainted())
        keeper = planner.keeper
        assert keeper is not None
        os.kill(keeper.process.pid, signal.SIGKILL)
        assert len((await predicted(planner, tainted())).moved) == BINDINGS
        assert planner.keeper is not keeper


async def test_cancelled_prediction_ends(tmp_path: Path) -> None:
    async with planning(tmp_path) as planner:
        predicting = asyncio.create_task(predicted(planner, tainted()))
        await asyncio.sleep(0)
        predicting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await predicting
        assert len((await predicted(planner, tainted())).moved) == BINDINGS


async def test_process_ends_with_the_parent_of_its_questions(tmp_path: Path) -> None:
    async with planning(tmp_path) as planner:
        await predicted(planner, tainted())
        keeper = planner.keeper
        assert keeper is not None
        assert keeper.process.poll() is None
    assert keeper.process.poll() is not None


async def test_unanswered_questions_of_a_busy_process_do_not_block_the_server(tmp_path: Path) -> None:
    async with planning(tmp_path) as planner:
        await predicted(planner, tainted())
        keeper = planner.keeper
        assert keeper is not None
        os.kill(keeper.process.pid, signal.SIGSTOP)
        try:
            with pytest.raises(PlanError, match="too many plans"):
                await _abandoned(planner, 1_000)
        finally:
            os.kill(keeper.process.pid, signal.SIGCONT)
        assert len((await _predicted_once_possible(planner)).moved) == BINDINGS


async def _predicted_once_possible(planner: PlanProcesses) -> Prediction:
    """Ask until the process has taken the questions that wait."""
    async with asyncio.timeout(60):
        while True:
            try:
                return await predicted(planner, tainted())
            except PlanError as error:
                if "too many plans" not in str(error):
                    raise
                await asyncio.sleep(0.05)


async def _abandoned(planner: PlanProcesses, count: int) -> None:
    """Ask questions, and cancel each before it is answered."""
    for _ in range(count):
        with suppress(TimeoutError):
            async with asyncio.timeout(0.002):
                await predicted(planner, tainted())


def test_large_answer_is_read_in_linear_time() -> None:
    lines, began_s = Lines(), time.process_time()
    for _ in range(16_384):
        assert lines.take(b"x" * 4_096) == []
    assert [len(line) for line in lines.take(b"\n7\n")] == [64 * 1024 * 1024, 1]
    assert lines.take(b"8") == []
    assert lines.take(b"9\n") == [b"89"]
    assert time.process_time() - began_s < 10
