"""Golden logs of all releases are read, folded and verified; a changed rule needs a new release."""

import asyncio
import re
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import msgspec
import pytest

from engine.log import sqlite
from engine.proof import audit, verification
from events import topics
from events.validation import manifests
from projections import query
from projections.runner import Projector
from projections.store import Store
from tests.golden import logs
from tests.tidy import trees

RECORDED: Final = logs.recorded()
DIFFERENCES: Final = msgspec.toml.decode(
    (logs.DIRECTORY / "differences.toml").read_bytes(), type=dict[str, dict[str, str]]
)
"""Why this release decides steps of an earlier one differently: by log, then by the first step that differs."""

AUDITS: Final = msgspec.toml.decode(
    (logs.DIRECTORY / "audits.toml").read_bytes(), type=dict[str, dict[str, int]]
)
"""Numbers of decisions that this release makes differently than an earlier one: by log, then by reason."""

_RELEASED: Final = re.compile(r"^## (\d+\.\d+\.\d+) \(\d{4}-\d{2}-\d{2}\)$", re.MULTILINE)


def name_of(log: Path) -> str:
    return f"{log.parent.name}/{log.name.removesuffix('.sqlite.gz')}"


@asynccontextmanager
async def opened(recorded: Path) -> AsyncGenerator[sqlite.SqliteLog]:
    """A golden log, opened as by a server that continues with the data of a former release."""
    with tempfile.TemporaryDirectory() as scratch:
        data = Path(scratch) / "data"
        await asyncio.to_thread(logs.unpack, recorded, data)
        log = await sqlite.SqliteLog.open(data)
        try:
            yield log
        finally:
            await log.aclose()


@pytest.mark.parametrize("recorded", RECORDED, ids=name_of)
async def test_golden_log_verifies_except_for_explained_differences(recorded: Path) -> None:
    async with opened(recorded) as log:
        report = await verification.verify(log)
    assert report.findings == []
    assert report.steps > 0
    messages = {difference.where: difference.message for difference in report.differences}
    assert messages.keys() == DIFFERENCES.get(name_of(recorded), {}).keys(), messages


@pytest.mark.parametrize("recorded", RECORDED, ids=name_of)
async def test_audit_of_a_golden_log_finds_the_decisions_that_a_change_of_rules_explains(
    recorded: Path,
) -> None:
    async with opened(recorded) as log:
        report = audit.merged([await audit.audit(log, range(topics.SHARDS))])
    assert report.steps > 0
    assert {group.reason: group.count for group in report.groups} == AUDITS.get(name_of(recorded), {})
    # Decisions differ only in shards for which ``differences.toml`` explains the first step that differs.
    explained = {int(where.split()[1]) for where in DIFFERENCES.get(name_of(recorded), {})}
    assert {example.shard for group in report.groups for example in group.examples} <= explained


@pytest.mark.parametrize("recorded", RECORDED, ids=name_of)
async def test_views_of_a_golden_log_show_the_placements_of_its_release(recorded: Path) -> None:
    store = await asyncio.to_thread(Store)
    async with opened(recorded) as log:
        projector = Projector(log, store, manifests.check)
        try:
            await projector.fold_to(log.last_number())
            shown = await asyncio.to_thread(_placements, store)
        finally:
            projector.close()
            await asyncio.to_thread(store.close)
    assert shown == logs.shown_with(recorded)


def _placements(store: Store) -> list[logs.Placement]:
    with store.reading() as rows:
        items = query.list_bindings(rows).items
    bindings = [msgspec.convert(item.document, logs.Binding) for item in items]
    return sorted(logs.placement_of(binding) for binding in bindings)


def test_each_release_has_a_log_of_each_history() -> None:
    released = _RELEASED.findall((trees.ROOT / "CHANGELOG.md").read_text())
    expected = {f"{release}/{history.stem}" for release in released for history in logs.histories()}
    missing = expected - {name_of(log) for log in RECORDED}
    assert not missing, f"record them: python -m tests.golden.record CHECKOUT (missing: {sorted(missing)})"
