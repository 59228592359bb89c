"""``log verify``, ``log checkpoint`` and ``log new-key`` on a real server's log: beside it, on a copy, and changed."""

import asyncio
import json
import shutil
import sqlite3
from pathlib import Path
from typing import Final

import pytest

from engine.bench import inputs
from engine.cli import main
from engine.log import sqlite
from tests.cli import servers
from tests.cli.servers import Shell

pytestmark = pytest.mark.slow

POLICY: Final = """
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: all, namespace: default}
spec: {resourceSelectors: [{apiVersion: v1, kind: ConfigMap}], placement: {}}
"""
MAP: Final = "{apiVersion: v1, kind: ConfigMap, metadata: {name: %s}, data: {a: b}}"


def test_checkpoints_of_a_server_prove_its_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = tmp_path / "data"
    key, signed = tmp_path / "my.key", tmp_path / "signed.jsonl"
    shell = Shell(directory, capsys)
    assert "fingerprint" in without_server(capsys, "log", "new-key", str(key))
    assert "exists" in without_server(capsys, "log", "new-key", str(key), code=1)
    options = ["--checkpoint-key", str(key), "--checkpoint-every", "1s", "--checkpoint-to", str(signed)]
    with servers.running(directory, *options):
        shell.apply(POLICY)
        shell.apply(MAP % "first")
        beside = shell("log", "verify", "--log", str(directory), "--processes", "2")
        assert "the log is verified, no findings" in beside
    assert "this part of the log is verified" in shell("log", "verify", "--to", "3")
    proof = ["--checkpoint", str(signed), "--public-key", f"{key}.pub"]
    shown = shell("log", "verify", *proof)
    assert "signed checkpoints, the last of" in shown
    # This checkpoint covers the records that the server wrote while it stopped, after its last checkpoint.
    shell("log", "checkpoint", "--key", str(key), "--to", str(signed))
    assert "nothing new" in shell("log", "checkpoint", "--key", str(key), "--to", str(signed))

    copy = tmp_path / "copy.sqlite"
    shutil.copy(directory / "log.sqlite", copy)
    drop_newest(copy)
    report = json.loads(shell("log", "verify", "--log", str(copy), *proof, "--json", code=1))
    assert any(finding["kind"] == "checkpoint" for finding in report["findings"])

    for words in (["--from", "99999"], ["--from", "3", "--to", "2"]):
        for command in (["log", "verify"], ["audit"]):
            shell(*command, *words, code=1)
            assert "the log has no numbers from" in shell.errors

    other = tmp_path / "other.key"
    without_server(capsys, "log", "new-key", str(other))
    shell("log", "verify", "--checkpoint", str(signed), "--public-key", f"{other}.pub", code=1)
    assert "is signed with the key" in shell.errors
    shell("log", "checkpoint", "--key", str(other), "--to", str(signed), code=1)
    assert "is signed with the key" in shell.errors


def test_exported_log_is_imported_and_proved(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shell = Shell(tmp_path / "data", capsys)
    with servers.running(tmp_path / "data"):
        shell.apply(POLICY)
        shell("log", "export", str(tmp_path / "archive"))
    assert "records up to number" in shell("log", "export", str(tmp_path / "archive"))
    assert "imported into" in without_server(
        capsys, "log", "import", str(tmp_path / "archive"), "--data", str(tmp_path / "copy")
    )
    whole = json.loads(shell("log", "verify", "--log", str(tmp_path / "data"), "--json"))
    assert json.loads(shell("log", "verify", "--log", str(tmp_path / "copy"), "--json")) == whole
    options = ["--format", "cloudevents", "--topic", "policies", "-n", "default", "--since", "1h"]
    export = json.loads(shell("log", "export", str(tmp_path / "events"), *options, "--json"))
    assert [file["records"] for file in export["files"]] == [1]
    shell("log", "export", str(tmp_path / "archive"), "--format", "parquet", code=1)
    assert "another format" in shell.errors
    shell("log", "export", str(tmp_path / "other"), "--topic", "nothing", code=2)
    assert "topics: specs" in shell.errors
    shell("log", "import", str(tmp_path / "archive"), code=1)
    assert "the log is not empty" in shell.errors


@pytest.mark.parametrize("content", [None, b"\xff" * 8_192, b""], ids=["missing", "damaged", "empty"])
def test_views_that_cannot_be_read_are_not_called_verified(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes | None
) -> None:
    async def write() -> None:
        log = await sqlite.SqliteLog.open(tmp_path)
        await log.append([inputs.deployment(0)])
        await log.aclose()

    asyncio.run(write())
    if content is not None:
        (tmp_path / "views.sqlite").write_bytes(content)
    shown = without_server(
        capsys, "log", "verify", "--views", "--data", str(tmp_path), code=0 if content is None else 1
    )
    assert "views: " in shown
    assert "its views are verified" not in shown


def test_wrong_options_are_reported_with_a_remedy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shell = Shell(tmp_path, capsys)
    shell("log", "verify", "--log", str(tmp_path / "nowhere"), code=1)
    assert "there is no log at" in shell.errors
    shell("log", "verify", "--log", "kafka://", code=1)
    assert "is not a log address" in shell.errors
    other = tmp_path / "other.yaml"
    other.write_text("a: b")
    for command, usage in ((("log", "verify"), 2), (("audit",), 1)):
        shell(*command, "--log", str(other), code=1)
        assert shell.errors.startswith(f"error: {other}: the log can't be read: ")
        shell(*command, "--to", "0", code=usage)
        assert "Must be >= 1" in shell.errors
    shell("log", "import", str(tmp_path / "absent"), code=1)
    assert "name a directory that `reballast log export` wrote" in shell.errors
    shell("log", "verify", "--checkpoint", "signed.jsonl", code=2)
    assert "--public-key" in shell.errors
    absent = str(tmp_path / "absent.pub")
    shell("log", "verify", "--checkpoint", "signed.jsonl", "--public-key", absent, code=1)
    assert "No such file or directory\n  use the FILE.pub" in shell.errors
    shell("log", "checkpoint", code=2)
    assert "reballast log new-key" in shell.errors
    (tmp_path / "bad.key").write_text("no key")
    shell("log", "checkpoint", "--key", str(tmp_path / "bad.key"), code=1)
    assert "not a private key" in shell.errors


def test_empty_log_is_not_signed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async def create() -> None:
        await (await sqlite.SqliteLog.open(tmp_path)).aclose()

    asyncio.run(create())
    key = str(tmp_path / "my.key")
    without_server(capsys, "log", "new-key", key)
    shown = without_server(capsys, "log", "checkpoint", "--key", key, "--data", str(tmp_path), code=1)
    assert "the log is empty" in shown
    shown = without_server(capsys, "log", "verify", "--since-snapshot", "--data", str(tmp_path), code=1)
    assert "the log has no snapshot of this release" in shown


def without_server(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> str:
    """Run a command that has no server."""
    capsys.readouterr()
    assert main.run([*words]) == code
    printed = capsys.readouterr()
    return printed.out + printed.err


def drop_newest(path: Path) -> None:
    """Delete the newest record in the file itself."""
    connection = sqlite3.connect(path)
    with connection:
        connection.execute("DELETE FROM records WHERE number = (SELECT max(number) FROM records)")
    connection.close()


DEPLOYMENT: Final = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 4
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: nginx}]}
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: web}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}]
  placement: {clusterAffinity: {clusterNames: [%s]}}
"""

OVERRIDE: Final = """
apiVersion: policy.karmada.io/v1alpha1
kind: OverridePolicy
metadata: {name: tier, namespace: default}
spec:
  overrideRules:
  - overriders: {labelsOverrider: [{operator: add, value: {tier: %s}}]}
"""


def test_audit_shows_the_decisions_of_another_policy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shell = Shell(tmp_path / "data", capsys)
    with servers.running(tmp_path / "data"):
        shell.apply(DEPLOYMENT % "member1")
        shell.apply(OVERRIDE % "front")
        shell.until_true(lambda: "tier" in shell("describe", "deploy", "web"))
    assert "all decisions are the same" in shell("audit")
    other = tmp_path / "other.yaml"
    other.write_text(OVERRIDE % "back")
    shown = shell("audit", "--policy", str(other), code=2)
    assert "1 OverridePolicy default/tier would apply with another result" in " ".join(shown.split())
    assert [line.split()[0] for line in shown.splitlines() if '"tier"' in line] == ["-", "+"]
    other.write_text(DEPLOYMENT.rpartition("---")[2] % "member2")
    shown = shell("audit", "--policy", str(other), code=2)
    assert "schedule-decided: available, clusters" in shown
    assert "recorded: schedule-decided clusters=member1:4" in shown
    assert "decided: schedule-decided clusters=member2:4" in shown
    audit = json.loads(shell("audit", "--policy", str(other), "--json", code=2))
    (example,) = next(group for group in audit["groups"] if "clusters" in group["reason"])["examples"]
    assert example["decidedExplanation"]["clusters"] == {"member2": 4}
    assert example["recordedExplanation"]["clusters"] == {"member1": 4}
    other.write_text(OVERRIDE.replace("tier", "teir") % "back")
    shell("audit", "--policy", str(other), code=1)
    assert "the log has no OverridePolicy default/teir to replace" in shell.errors
    other.write_text(MAP % "no-policy")
    shell("audit", "--policy", str(other), code=1)
    assert "ConfigMap is not a policy" in shell.errors
    other.write_text(DEPLOYMENT.rpartition("---")[2] % "[]" + "  replicas: 1\n")
    shell("audit", "--policy", str(other), code=1)
    assert "correct the policy" in shell.errors
