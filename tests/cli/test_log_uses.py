"""A log has either observations of another control plane, or clusters and objects of its own."""

import asyncio
from pathlib import Path

import msgspec
import pytest

from engine.cli import main
from engine.log.sqlite import SqliteLog
from engine.process import installation
from events import codec, records, shapes
from events.observations import KubernetesEventWritten
from tests.builders import inputs
from tests.golden.samples import observations

KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: karmada
contexts: [{name: karmada, context: {cluster: karmada, user: observer}}]
clusters: [{name: karmada, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: observer, user: {token: a-token}}]
"""

CLIENT_EVENT = KubernetesEventWritten(name="web.1", namespace="default", manifest=msgspec.Raw(b"{}"))


async def record(directory: Path, event: shapes.Event) -> None:
    """Write a log with one record."""
    envelope = records.Envelope(id="1", source="/test", type="", time="2026-01-01T00:00:00Z")
    topic_record = codec.encode(event, envelope, partition=0, key="any")
    log = await SqliteLog.open(directory)
    await log.append([topic_record])
    await log.aclose()


@pytest.mark.parametrize(
    ("event", "words", "message"),
    [
        (observations.SAMPLES[0], ["up"], "the log has the observations of another control plane"),
        (inputs.joined("member1"), ["observe"], "the log has clusters and objects of its own"),
        (CLIENT_EVENT, ["observe"], "the log has clusters and objects of its own"),
    ],
)
def test_log_is_used_as_before(
    event: shapes.Event, words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kubeconfig, directory = tmp_path / "karmada.config", tmp_path / "data"
    kubeconfig.write_text(KUBECONFIG)
    asyncio.run(record(directory, event))
    options = ["--kubeconfig", str(kubeconfig)] if words == ["observe"] else []
    assert main.run([*words, *options, "--data", str(directory)]) == 1
    assert f"{directory}: {message}\n  use another directory" in capsys.readouterr().err


async def test_server_starts_again_after_a_client_wrote_an_event(tmp_path: Path) -> None:
    await record(tmp_path, CLIENT_EVENT)
    async with installation.opened(tmp_path, []) as running:
        assert running.log.last_number() > 0
