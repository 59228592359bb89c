"""Commands with odd names, variables, files and terminals: a message or the right result, never a traceback."""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from engine.cli import client, failures, main, server_location
from events.json_values import Json, object_at
from tests.cli.deployments import applied
from tests.cli.servers import STOP_SECONDS, Shell, editor

WIDGETS = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.io}
spec:
  group: example.io
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions:
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
apiVersion: example.io/v1
kind: Widget
metadata: {name: odd}
spec: {replicas: many}
"""


def config(name: str, **metadata: object) -> str:
    """Return a ConfigMap as JSON."""
    return json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}})


def written(path: Path, *documents: str) -> str:
    path.write_text("\n---\n".join(documents), encoding="utf-8")
    return str(path)


def as_process(*words: str, **environment: str) -> "subprocess.CompletedProcess[bytes]":
    """Run a command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "engine.cli", *words],
        capture_output=True,
        check=False,
        timeout=60,
        env=os.environ | environment,
    )


@pytest.mark.parametrize("name", ["", ".", "..", "web\n"])
def test_name_that_leads_elsewhere_is_refused(shell: Shell, tmp_path: Path, name: str) -> None:
    applied(shell, "kept")
    for words in (
        ("delete", "deploy", name),
        ("delete", "deploy/", name),
        ("delete", "deploy", "kept", "-n", name or ".."),
        ("taint", name, "a:NoSchedule"),
    ):
        shell(*words, code=2)
    path = written(tmp_path / "odd.json", config(name or ".."), config("cm", namespace=name or ".."))
    for command in ("apply", "delete"):
        shell(command, "-f", path, code=1)
        assert "metadata.name: " in shell.errors
        assert "metadata.namespace: " in shell.errors
    shell("get", "deploy", "kept")
    shell("get", "cluster", "member1")


def test_objects_are_applied_beside_those_of_odd_api_versions(shell: Shell, tmp_path: Path) -> None:
    odd = [
        json.dumps({"apiVersion": version, "kind": "Foo", "metadata": {"name": "x"}})
        for version in ("/", "a/b/c", "../../version", "v1\n", "é")
    ]
    printed = shell("apply", "-f", written(tmp_path / "odd.json", *odd, config("beside")), code=1)
    assert printed == "configmap/beside created\n"
    assert shell.errors.count('the server has no kind "Foo"') == len(odd)
    misspelt = config("misspelt").replace("ConfigMap", "ConfigMpa")
    shell("apply", "-f", written(tmp_path / "odd.json", misspelt), code=1)
    assert shell.errors.endswith('the server has no kind "ConfigMpa" in v1\n  did you mean ConfigMap?\n')


def test_objects_written_before_a_failure_are_reported(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path / "two.json", config("first"), config("second"))
    send = client.Client.kubernetes

    def failing(
        self: client.Client,
        method: str,
        path: str,
        body: Json | None = None,
        *,
        query: Mapping[str, client.Parameter] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> client.Reply:
        if "second" in path or object_at(body, "metadata").get("name") == "second":
            raise failures.Failure("the server stopped", code=failures.NO_SERVER)
        return send(self, method, path, body, query=query, headers=headers)

    with monkeypatch.context() as patched:
        patched.setattr(client.Client, "kubernetes", failing)
        assert shell("apply", "-f", path, code=3) == "configmap/first created\n"
        assert shell("delete", "cm", "first", "second", code=3) == "configmap/first deleted\n"
        (change,) = json.loads(shell("apply", "-f", path, "--json", code=3))
        shell("delete", "cm", "first")
        patched.setattr(client.Client, "kubernetes", send)
        plan = str(tmp_path / "plan.json")
        shell("plan", "-f", path, "-o", plan)
        patched.setattr(client.Client, "kubernetes", failing)
        assert shell("apply", "--plan", plan, code=3) == "configmap/first created\n"
    assert (change["action"], change["name"]) == ("created", "first")


def test_feed_of_records_with_line_separators_is_followed(shell: Shell) -> None:
    note = "a\u2028b\u2029c\u0085d"
    command = [
        sys.executable,
        "-m",
        "engine.cli",
        "log",
        "tail",
        "-n0",
        "--json",
        "--data",
        str(shell.directory),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as following:
        lines: list[str] = []
        reader = threading.Thread(
            target=lambda: lines.extend(line.decode() for line in following.stdout or ())
        )
        reader.start()
        # The feed begins with the first record after the command has started.
        for count in range(600):
            metadata = config("separated", annotations={"note": note}, labels={"count": str(count)})
            shell.apply(metadata)
            time.sleep(0.1)
            if any(note in line for line in lines) or following.poll() is not None:
                break
        following.terminate()
        reader.join()
    assert any(note in line for line in lines)


def test_custom_objects_are_listed_whatever_their_replicas_are(shell: Shell) -> None:
    shell.apply(WIDGETS)
    assert shell("get", "widgets").splitlines()[1].startswith("odd ")


def test_all_objects_of_a_name_are_printed(shell: Shell, tmp_path: Path) -> None:
    namespace = json.dumps({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}})
    path = written(tmp_path / "two.json", namespace, config("twin"), config("twin", namespace="other"))
    shell("apply", "-f", path)
    config_maps = json.loads(shell("get", "cm", "twin", "-A", "-o", "json"))
    assert [item["metadata"]["namespace"] for item in config_maps["items"]] == ["default", "other"]


def test_missing_kinds_and_works_are_reported(shell: Shell) -> None:
    shell("get", "", code=2)
    shell("get", ",", "-w", code=2)
    shell("get", "/web", code=2)
    for form in ("table", "json"):
        shell("get", "works", "absent", "-o", form, code=1)
        assert shell.errors.startswith('error: works "absent" not found\n  see: reballast get works -A ')


def test_kind_without_replicas_is_not_scaled(shell: Shell, tmp_path: Path) -> None:
    shell("scale", "cm", "unscaled", "--replicas", "2", code=1)
    assert shell.errors.startswith('error: configmap "unscaled" not found in namespace default\n')
    shell("apply", "-f", written(tmp_path / "config.json", config("unscaled")))
    shell("scale", "cm", "unscaled", "--replicas", "2", code=1)
    assert shell.errors == "error: configmap/unscaled: kind: a ConfigMap has no replicas\n"


def test_empty_name_of_a_leaving_cluster_is_refused(shell: Shell) -> None:
    shell("unjoin", "", code=2)
    assert shell.errors.startswith('error: "" is not the name of a cluster.cluster.karmada.io\n')


def test_state_before_the_first_record_is_empty(shell: Shell) -> None:
    shell("get", "deploy", "--as-of", "0")
    assert shell.errors == "No resources found in default namespace.\n"


def test_name_with_a_question_mark_is_no_query(shell: Shell) -> None:
    applied(shell, "asked")
    shell.until_true(lambda: bool(shell("explain", "deploy", "asked")))
    for name in ("asked-deployment?", "asked-deployment#", "asked\n"):
        shell("explain", "deploy", name, code=1)
    shell("plan", "check", "?", code=1)


@pytest.mark.parametrize(
    ("chosen", "reason"),
    [
        (" ", ""),
        ("'vi", "is not a command"),
        ("no-such-editor", "can't be started"),
        ("false", "exited with"),
    ],
)
def test_editor_that_fails_leaves_nothing_behind(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chosen: str, reason: str
) -> None:
    shell.apply(config("edited"))
    (tmp_path / "vi").write_text("#!/bin/sh\nrm $1\n")
    (tmp_path / "vi").chmod(0o700)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("EDITOR", chosen)
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    shell("edit", "cm", "edited", code=1 if reason else 0)
    assert (reason or "nothing was changed") in shell.errors
    assert not list((tmp_path / "temporary").iterdir())


def test_backup_of_the_editor_is_removed(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell.apply(config("edited"))
    backup = "path.with_suffix('.yaml~').write_text(text)"
    monkeypatch.setenv("EDITOR", editor(tmp_path, f"text + ('data: {{a: b}}' if {backup} else '')"))
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    assert shell("edit", "cm", "edited") == "configmap/edited edited\n"
    assert not list((tmp_path / "temporary").iterdir())


def test_object_with_the_longest_name_is_edited(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = ".".join(["a" * 62] * 4)
    shell.apply(config(name))
    monkeypatch.setenv("EDITOR", editor(tmp_path, "text + 'data: {a: b}'"))
    assert shell("edit", "cm", name) == f"configmap/{name} edited\n"


def test_description_of_one_of_several_objects_needs_the_namespace(shell: Shell, tmp_path: Path) -> None:
    path = written(tmp_path / "a.json", config("twice"))
    shell("apply", "-f", path)
    assert "name: twice" in shell("describe", "cm", "twice", "-n", "")
    shell("apply", "-f", path, "-n", "kube-system")
    shell("describe", "cm", "twice", "-n", "", code=2)
    assert "cm twice exists in default, kube-system" in shell.errors


def test_unreadable_files_of_a_directory_are_named(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "sub.yaml").mkdir()
    written(tmp_path / "good.json", config("good"))
    assert shell("apply", "-f", str(tmp_path)) == "configmap/good created\n"
    (tmp_path / "gone.yaml").symlink_to(tmp_path / "absent")
    shell("apply", "-f", str(tmp_path), code=1)
    assert shell.errors.startswith(f"error: {tmp_path}/gone.yaml: No such file")


def test_plan_without_effect_is_json_too(shell: Shell, tmp_path: Path) -> None:
    path = written(tmp_path / "same.json", config("same"))
    shell("apply", "-f", path)
    assert json.loads(shell("plan", "-f", path, "--json"))["state"] == "done"
    shell("plan", "fail", "member1", "--limit=-1", code=1)


def test_plan_of_files_without_objects_is_refused(shell: Shell, tmp_path: Path) -> None:
    path, out = written(tmp_path / "empty.yaml", "# nothing"), tmp_path / "plan.json"
    for words in (("plan", "-f", path, "-o", str(out)), ("plan", "delete", "-f", path)):
        shell(*words, code=1)
        assert "the files contain no objects" in shell.errors
    assert not out.exists()


@pytest.mark.parametrize(
    ("address", "token"),
    [("http://[::1", ""), ("nonsense", ""), ("http://a:99999", ""), ("http://127.0.0.1:1", "tökén")],
)
def test_variables_that_name_no_server_are_reported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], address: str, token: str
) -> None:
    monkeypatch.setenv(server_location.SERVER_VARIABLE, address)
    monkeypatch.setenv(server_location.TOKEN_VARIABLE, token)
    assert main.run(["get", "deploy"]) in {failures.FAILED, failures.NO_SERVER}
    assert capsys.readouterr().err.startswith("error: REBALLAST_")


def test_unreadable_kubeconfig_is_named_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kubeconfig = tmp_path / "config"
    kubeconfig.write_bytes(b"\xbe")
    for command in (["observe"], ["join", "edge"]):
        assert main.run([*command, "--kubeconfig", str(kubeconfig)]) == failures.FAILED
        assert capsys.readouterr().err.count(str(kubeconfig)) == 1
        assert main.run([*command, "--kubeconfig", str(tmp_path / "absent")]) == failures.FAILED
        assert capsys.readouterr().err.startswith(
            f"error: {tmp_path / 'absent'}: No such file or directory\n"
        )


@pytest.mark.slow
def test_output_that_fails_is_reported() -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "engine.cli", "schema"],
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
            timeout=60,
        )
    assert done.returncode == failures.FAILED
    assert done.stderr == b"error: standard output can't be written: No space left on device\n"
    closed = subprocess.run(
        ["/bin/sh", "-c", f"{sys.executable} -m engine.cli schema >&-"], check=False, timeout=60
    )
    assert closed.returncode == failures.OK


def test_terminal_without_a_character_gets_its_code(shell: Shell) -> None:
    shell.apply(config("arrow", annotations={"to": "→"}))
    done = as_process(
        "get", "cm", "arrow", "-o", "yaml", "--data", str(shell.directory), PYTHONIOENCODING="ascii"
    )
    assert b"to: \\u2192\n" in done.stdout


def test_word_that_is_no_text_is_reported(shell: Shell) -> None:
    shell("get", "deploy", "\udcff", code=2)
    assert "is not UTF-8" in shell.errors


@pytest.mark.slow
@pytest.mark.parametrize("last", [b"Starting on ", b"Ready after "])
def test_server_runs_on_if_nothing_reads_its_output(last: bytes, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "engine.cli", "up", "--data", str(tmp_path / "data")]
    # With buffers, as usual: what they hold is written at the very end.
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=buffered) as process:
        assert process.stdout is not None
        while not process.stdout.readline().startswith(last):
            pass
        process.stdout.close()
        while not (tmp_path / "data" / "endpoint.json").exists():
            assert process.poll() is None
            time.sleep(0.02)
        assert main.run(["get", "clusters", "--data", str(tmp_path / "data")]) == failures.OK
        process.terminate()
        assert process.wait(STOP_SECONDS) == failures.OK


@pytest.mark.parametrize(
    "words",
    [
        ("up", "--checkpoint-key", "KEY", "--checkpoint-to", "kafka://"),
        ("up", "--checkpoint-key", "KEY", "--checkpoint-every", "0s"),
        ("up", "--checkpoint-every", "5m"),
        ("up", "--checkpoint-to", "signed.jsonl"),
        ("log", "checkpoint", "--key", "KEY", "--to", "kafka://"),
        ("log", "verify", "--checkpoint", "kafka://", "--public-key", "KEY.pub"),
    ],
)
def test_impossible_checkpoints_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    key = str(tmp_path / "key")
    assert main.run(["log", "new-key", key]) == failures.OK
    named = [word.replace("KEY", key) for word in words]
    assert main.run([*named, "--data", str(tmp_path / "data")]) == failures.USAGE
    assert capsys.readouterr().err.startswith("error: ")


def test_files_with_odd_bytes_are_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "plan").write_bytes(b'{"id": "\xff"}')
    assert main.run(["apply", "--plan", str(tmp_path / "plan")]) == failures.FAILED
    assert "is not a plan" in capsys.readouterr().err
    (tmp_path / server_location.FILE).write_bytes(b'{"url": "\xff"}')
    assert main.run(["members", "--data", str(tmp_path)]) == failures.NO_SERVER
    assert "can't be read" in capsys.readouterr().err
