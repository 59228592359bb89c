"""The state of an observed control plane in a log, as of the numbers, positions and times that users give."""

import asyncio
from pathlib import Path

import msgspec
import pytest

from engine.cli import failures, options
from engine.cli.karmada import copies, states
from engine.log import sqlite
from engine.observer import observation
from events import observations

NOW_MS = 1_767_225_600_000


def log_of(directory: Path, *names: str, api_version: str = "v1", kind: str = "Namespace") -> str:
    """Write a log with one object per record, by default a namespace; return its directory."""

    async def write() -> None:
        log = await sqlite.SqliteLog.open(directory)
        for version, name in enumerate(names, 1):
            manifest: dict[str, object] = {
                "apiVersion": api_version,
                "kind": kind,
                "metadata": {"name": name, "uid": name, "resourceVersion": str(version)},
            }
            seen = observations.ObjectObserved(
                manifest=msgspec.Raw(msgspec.json.encode(manifest)),
                kind=kind,
                name=name,
                version=version,
            )
            await log.append([observation.record(seen, str(version), "/observed/karmada", NOW_MS + version)])
        await log.aclose()

    asyncio.run(write())
    return str(directory)


def names_in(state: states.State) -> list[str]:
    return sorted(value.name for value in state.objects)


@pytest.mark.parametrize("as_of", ["1", "observations/0/0", "2026-01-01T00:00:00.001Z"])
def test_state_is_read_as_of_a_number_a_position_or_a_time(tmp_path: Path, as_of: str) -> None:
    state = copies.recorded_state(log_of(tmp_path, "one", "two"), options.SERVER, as_of)
    assert names_in(state) == ["one"]


@pytest.mark.parametrize(
    "as_of", ["3", "9" * 5_000, "observations/0/2", f"observations/0/{'9' * 5_000}", "elsewhere/0/0", "-1"]
)
def test_point_that_the_log_does_not_contain_is_refused(tmp_path: Path, as_of: str) -> None:
    directory = log_of(tmp_path, "one", "two")
    with pytest.raises(failures.Failure, match="--as-of"):
        copies.recorded_state(directory, options.SERVER, as_of)


def test_quotas_whose_limits_the_copy_ignores_are_noted(tmp_path: Path) -> None:
    log = log_of(tmp_path, "q", api_version="policy.karmada.io/v1alpha1", kind="FederatedResourceQuota")
    state = copies.recorded_state(log, options.SERVER, "")
    assert state.notes == ["FederatedResourceQuota not copied: q: their limits do not apply to the copy"]
