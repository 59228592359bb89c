"""Orderly and other ends: SIGTERM, a second server, a damaged file, a full disk."""

import asyncio
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

import httpx
import pytest
import yaml

from engine.cli import failures, server_location, server_reads
from engine.cli.client import Client
from engine.http.query.response_types import Listing
from engine.log import sqlite, sqlite_table
from engine.process import installation
from engine.process.views import remote
from engine.proof.verification import Report
from events import codec, decisions, kube_objects, specs
from tests import writes
from tests.builders.manifests import config_map, deployment
from tests.faults.load_objects import POLICY
from tests.processes import Server

pytestmark = pytest.mark.slow

DEPLOYMENTS: Final = 100
FILE_BYTES_MAX: Final = 12_000_000
VIEWS_BYTES_MAX: Final = 2_000_000
OBJECTS: Final = 20
WAIT_SECONDS: Final = 60.0


def command(server: Server, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a command as a process."""
    call = [sys.executable, "-m", "engine.cli", *words, "--data", str(server.directory)]
    return subprocess.run(call, capture_output=True, text=True, timeout=60, check=False)


def test_sigterm_waits_for_pending_decisions_within_the_deadline(server: Server) -> None:
    manifests = [POLICY] + [deployment(f"d{number}", 3) for number in range(DEPLOYMENTS)]
    with Client(server.directory) as client:
        assert len(writes.apply(client, yaml.safe_dump_all(manifests).encode())) == DEPLOYMENTS + 1

    # A process that does not end by its deadline exits with another code.
    assert server.stop() == 0

    assert not (server.directory / "endpoint.json").exists()
    applied, decided = asyncio.run(_counts(server.directory))
    assert (applied, decided) == (DEPLOYMENTS, DEPLOYMENTS)


async def _counts(directory: Path) -> tuple[int, int]:
    """Return the numbers of applied and of decided Deployments."""
    log = await sqlite.SqliteLog.open(directory)
    try:
        decoded = [codec.decode(record) for record in await log.read_all(0, log.last_number())]
    finally:
        await log.aclose()
    events = [event.data for event in decoded if isinstance(event, codec.Decoded)]
    # The engine writes its own Secrets.
    templates = [
        kube_objects.read_head(event.manifest) for event in events if isinstance(event, specs.TemplateApplied)
    ]
    applied = sum(template.kind == "Deployment" for template in templates)
    return applied, len({event.key for event in events if isinstance(event, decisions.ScheduleDecided)})


def test_second_server_on_the_same_data_is_refused(server: Server) -> None:
    second = command(server, "up")

    assert second.returncode == failures.FAILED
    assert "another process holds the log" in second.stderr
    assert "name another directory with --data" in second.stderr
    assert "Traceback" not in second.stderr
    assert command(server, "get", "clusters").stdout.count("True") == 3


@pytest.fixture
def damaged(server: Server) -> Server:
    """A stopped server, with a flipped bit of a user's write in its log."""
    with Client(server.directory) as client:
        writes.apply(client, config_map("config-7", text="marked"))
    server.stop()
    assert "the log is verified, no findings" in command(server, "log", "verify").stdout
    path = server.directory / sqlite_table.FILE
    content = bytearray(path.read_bytes())
    content[content.index(b"marked")] ^= 1
    path.write_bytes(content)
    return server


def _assert_named(proof: subprocess.CompletedProcess[str]) -> None:
    assert proof.returncode == failures.FAILED
    assert "is not what was appended: its checksum differs" in proof.stdout
    assert "specs/" in proof.stdout


def test_flipped_bit_is_located_with_and_without_a_server(damaged: Server) -> None:
    _assert_named(command(damaged, "log", "verify"))

    # Records before a snapshot are not read at the start.
    damaged.start()

    _assert_named(command(damaged, "log", "verify"))
    assert damaged.stop() == 0


def test_server_that_must_read_a_damaged_record_does_not_start(damaged: Server) -> None:
    for snapshot in damaged.directory.glob("snapshot-*.bin"):
        snapshot.unlink()

    refused = command(damaged, "up")

    assert refused.returncode == failures.FAILED
    assert "its checksum differs" in refused.stderr
    assert "reballast log verify" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_full_disk_refuses_writes_serves_queries_and_loses_nothing(tmp_path: Path) -> None:
    server = Server(tmp_path / "data")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    # The server inherits the limit: none of its files can exceed it, as with a full disk.
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_BYTES_MAX, hard))
    try:
        server.start()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    with Client(server.directory) as client:
        written, reason = _fill(client)
        assert "the log was not written" in reason
        assert "the log was not written" in _readiness(server)
        resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, hard))
        _until(lambda: _readiness(server) == "ok")
        assert _texts(client) == written
    server.kill()

    server.start()

    with Client(server.directory) as client:
        assert _texts(client) == written
        assert client.verify(Report).findings == []
    assert server.stop() == 0


async def test_stop_without_a_writable_log_is_no_failure(tmp_path: Path) -> None:
    async with installation.opened(tmp_path, []):
        (tmp_path / sqlite_table.FILE).rename(tmp_path / "moved")


def _views_child(pid: int) -> int:
    """Return the process id of a server's views process."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    (views_pid,) = [
        child for child in children if b"engine.process.views" in Path(f"/proc/{child}/cmdline").read_bytes()
    ]
    return int(views_pid)


def test_full_views_disk_refuses_queries_with_a_reason_until_there_is_space(
    server: Server,
) -> None:
    child = _views_child(server.pid)
    resource.prlimit(child, resource.RLIMIT_FSIZE, (VIEWS_BYTES_MAX, resource.RLIM_INFINITY))
    with Client(server.directory) as client:
        count, reason = _write_until_refused(client)
        assert "views.sqlite can't be written" in reason
        assert "the views continue automatically once there is space" in reason
        assert "views.sqlite can't be written" in _readiness(server)
        # The next query is refused without a wait.
        began_s = time.monotonic()
        with pytest.raises(failures.Failure, match="can't be written"):
            client.get("objects", Listing)
        assert time.monotonic() - began_s < remote.PATIENCE_S

        resource.prlimit(child, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        # All writes are in the log, even the refused one, of which only the response failed.
        _until(lambda: len(_texts(client)) >= count)
        assert len(_texts(client)) <= count + 1
        assert _readiness(server) == "ok"
        assert client.verify(Report).findings == []
    assert server.stop() == 0


def _write_until_refused(client: Client) -> tuple[int, str]:
    """Write objects; return the number of acknowledged ones, and the reason of the refusal."""
    for number in range(1_000):
        try:
            writes.apply(client, config_map(f"config-{number}", text=f"{number:04}{'x' * 40_000}"))
        except failures.Failure as failure:
            return number, failure.message
    raise AssertionError("the disk did not fill up")


def _until(is_so: Callable[[], bool]) -> None:
    """Poll until ``is_so`` returns true; refused queries count as false."""
    until_s = time.monotonic() + WAIT_SECONDS
    while True:
        with suppress(failures.Failure):
            if is_so():
                return
        assert time.monotonic() < until_s
        time.sleep(0.1)


def _readiness(server: Server) -> str:
    return httpx.get(f"{server_location.find(server.directory).url}/readyz").text


def _texts(client: Client) -> dict[str, str]:
    """Return the text of each object."""
    config_maps = server_reads.objects(client, "objects", kind="cm")
    return {config_map.name: str(config_map.object_at("data")["text"])[:4] for config_map in config_maps}


def _fill(client: Client) -> tuple[dict[str, str], str]:
    """Write until refused; return the acknowledged text of each object, and the reason."""
    written: dict[str, str] = {}
    for number in range(10_000):
        name, text = f"{number % OBJECTS}", f"{number:04}"
        try:
            writes.apply(client, config_map(f"config-{name}", text=f"{text}{'x' * 40_000}"))
        except failures.Failure as failure:
            assert number > OBJECTS
            return written, failure.message
        written[f"config-{name}"] = text
    raise AssertionError("the disk did not fill up")
