"""Each command by example, with its exit code and messages."""

import io
import json
import os
import select
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from tests.cli.deployments import APP, applied
from tests.cli.servers import (
    READY_SECONDS,
    STOP_SECONDS,
    Shell,
    editor,
    running,
    without_ages,
)


def test_get_names_workloads_that_are_not_scheduled_as_requested(shell: Shell) -> None:
    divided = "replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Aggregated}"
    shell.apply(APP.replace("NAME", "large").replace("clusterAffinity: {clusterNames: [member1]}", divided))
    shell.until_true(lambda: "large  " in shell("get", "deploy") and not shell.errors)
    shell("scale", "deploy", "large", "--replicas=500000")

    shell.until_true(lambda: bool(shell("get", "deploy") and shell.errors))
    assert shell.errors.startswith(
        "large is not scheduled as requested: Unschedulable; see: reballast explain"
    )
    shell("delete", "deploy", "large")


def test_scale_label_and_delete_change_the_object(shell: Shell) -> None:
    applied(shell, "one")

    assert shell("scale", "deploy", "one", "--replicas=5") == "deployment.apps/one scaled\n"
    assert shell("label", "deploy", "one", "team=a", "app-") == "deployment.apps/one labeled\n"
    labels = json.loads(shell("get", "deploy", "one", "-o", "json"))["metadata"]["labels"]
    assert labels["team"] == "a"
    assert "app" not in labels
    shell("label", "deploy/one", "team=b", code=1)
    assert "has the value 'a' already\n  use --overwrite to change it" in shell.errors
    shell("label", "deploy/one", "team=b", "--overwrite")
    assert without_ages(shell("get", "deploy", "-l", "team=b"))[1].startswith("one member1")
    assert shell("delete", "deploy", "one") == "deployment.apps/one deleted\n"
    shell("get", "deploy", "one", code=1)
    assert 'deployment.apps "one" not found in namespace default' in shell.errors


def test_get_lists_several_named_objects(shell: Shell) -> None:
    for name in ("first", "second", "third"):
        applied(shell, name)

    heading, *rows = shell("get", "deploy", "first", "third").splitlines()
    assert heading.split()[:2] == ["NAME", "CLUSTER"]
    assert [row.split()[0] for row in rows] == ["first", "third"]
    bare = shell("get", "deploy/second", "pp/second", "--no-headers").splitlines()
    assert [row.split()[0] for row in bare if row] == ["second", "second"]
    whole = json.loads(shell("get", "deploy", "first", "second", "-o", "json"))
    assert [item["metadata"]["name"] for item in whole["items"]] == ["first", "second"]
    shell("get", "deploy", "first", "absent", code=1)
    assert '"absent" not found' in shell.errors
    shell("delete", "deploy", "first", "second", "third")


def test_input_mistakes_are_reported_with_a_hint(shell: Shell) -> None:
    for words in (
        ("get", "deplyo"),
        ("get", "deplyo", "web"),
        ("explain", "deplyo/web"),
        ("timeline", "deplyo/web"),
    ):
        shell(*words, code=1)
        assert shell.errors == 'error: unknown kind "deplyo"\n  did you mean deploy?\n'
    shell("taint", "member3", "two words:NoSchedule", code=1)
    assert "'two words' is not a taint's key" in shell.errors
    shell.apply(APP.partition("---\n")[2].replace("  resourceSelectors:", "  # resourceSelectors:"), code=1)
    assert "spec.resourceSelectors: Required value" in shell.errors


def test_timeline_of_a_missing_object_is_an_error_also_as_json(shell: Shell) -> None:
    assert shell("timeline", "deploy", "absent", "--json", code=1) == ""
    assert json.loads(shell.errors)["error"]["message"] == "no event about default/absent-deployment"


def test_directories_and_standard_input_are_applied(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("b.yaml", "a.yml", "c.json", "ignored.txt"):
        word = name.partition(".")[0]
        (tmp_path / name).write_text(
            f'{{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {{"name": "cm-{word}"}}}}'
        )

    assert shell("apply", "-f", str(tmp_path)).splitlines() == [
        "configmap/cm-a created",
        "configmap/cm-b created",
        "configmap/cm-c created",
    ]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO((tmp_path / "b.yaml").read_bytes())))
    assert shell("delete", "-f", "-") == "configmap/cm-b deleted\n"
    shell("apply", "-f", str(tmp_path / "absent.yaml"), code=1)
    assert "No such file or directory" in shell.errors


def test_clusters_are_tainted_cordoned_and_shown(shell: Shell) -> None:
    assert shell("taint", "member3", "a=b:NoSchedule", "c:PreferNoSchedule") == "cluster/member3 tainted\n"
    assert shell("taint", "member3", "a:NoSchedule-", "d:NoSchedule") == "cluster/member3 modified\n"
    assert shell("cordon", "member3") == "cluster/member3 cordoned\n"
    shown = shell("get", "clusters")
    assert "c:PreferNoSchedule,d:NoSchedule,cluster.karmada.io/unschedulable:NoSchedule" in shown
    assert shell("uncordon", "member3") == "cluster/member3 uncordoned\n"
    both = shell("cordon", "member2", "cluster/member3").splitlines()
    assert both == ["cluster/member2 cordoned", "cluster/member3 cordoned"]
    assert "member3 uncordoned" in shell("uncordon", "member2", "member3")
    assert shell("untaint", "member3", "c", "d:NoSchedule") == "cluster/member3 untainted\n"
    shell("untaint", "member3", "c", code=1)
    assert 'taint "c" not found on member3\n  see: reballast get clusters member3' in shell.errors
    shell("cordon", "nobody", code=1)


@pytest.mark.parametrize(
    "words",
    [
        ("taint", "member1"),
        ("taint", "member1", "a"),
        ("taint", "member1", "=b:NoSchedule"),
        ("untaint", "member1", ":NoSchedule"),
        ("taint", "member1", "a=b:NoSchedule", "a:NoSchedule-"),
        ("taint", "member1", "a-", "a=b:NoSchedule"),
        ("taint", "member1", "a=b:NoSchedule", "a=c:NoSchedule"),
        ("label", "deploy", "one", "team"),
        ("label", "deploy", "one", "team=a", "team-"),
        ("label", "deploy", "one", "team-", "team=a"),
        ("scale", "deploy", "one", "--replicas=-1"),
        ("scale", "deploy", "one", "--replicas=many"),
        ("delete",),
        ("delete", "deploy"),
        ("get",),
        ("get", "deploy", "--bogus"),
        ("gizmo",),
    ],
)
def test_invalid_command_line_exits_with_2(shell: Shell, words: tuple[str, ...]) -> None:
    shell(*words, code=2)

    assert shell.errors


def test_edit_sends_a_patch(shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    applied(shell, "three")

    monkeypatch.setenv("EDITOR", editor(tmp_path, "text.replace('replicas: 2', 'replicas: 4')"))
    assert shell("edit", "deploy", "three") == "deployment.apps/three edited\n"
    assert json.loads(shell("get", "deploy", "three", "-o", "json"))["spec"]["replicas"] == 4
    monkeypatch.setenv("EDITOR", editor(tmp_path, "text"))
    shell("edit", "deploy", "three")
    assert "nothing was changed" in shell.errors
    monkeypatch.setenv("EDITOR", editor(tmp_path, "text.replace('replicas: 4', 'replicas: [')"))
    shell("edit", "deploy", "three", code=1)
    kept = Path(shell.errors.rpartition("your edits are saved in ")[2].strip())
    assert "replicas: [" in kept.read_text()
    monkeypatch.setenv("EDITOR", editor(tmp_path, "text.replace('region: ', 'region: far-')"))
    assert shell("edit", "cluster/member3") == "cluster/member3 edited\n"
    assert "far-" in shell("get", "cluster", "member3", "-o", "wide")


def meanwhile(shell: Shell, *words: str, then: str) -> str:
    """Return an editor script that runs another command while the editor is open, then changes the text."""
    command = [sys.executable, "-m", "engine.cli", *words, "--data", str(shell.directory)]
    return f"__import__('subprocess').run({command!r}, check=True) and {then}"


def test_edit_is_merged_with_concurrent_changes_of_other_fields(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = meanwhile(
        shell, "label", "cluster", "member2", "team=a", then="text.replace('region: ', 'region: off-')"
    )
    monkeypatch.setenv("EDITOR", editor(tmp_path, script))

    assert shell("edit", "cluster/member2").splitlines()[-1] == "cluster/member2 edited"

    cluster = json.loads(shell("get", "cluster", "member2", "-o", "json"))
    assert cluster["metadata"]["labels"]["team"] == "a"
    assert cluster["spec"]["region"].startswith("off-")


def test_edit_of_a_concurrently_changed_field_is_refused(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    applied(shell, "raced")
    script = meanwhile(
        shell, "scale", "deploy", "raced", "--replicas=7", then="text.replace('replicas: 2', 'replicas: 4')"
    )
    monkeypatch.setenv("EDITOR", editor(tmp_path, script))

    shell("edit", "deploy", "raced", code=1)

    assert "another client changed the same fields" in shell.errors
    assert json.loads(shell("get", "deploy", "raced", "-o", "json"))["spec"]["replicas"] == 7


def test_described_workload_names_the_clusters_that_it_is_evicted_from(shell: Shell) -> None:
    applied(shell, "evicted")
    shell.until(
        ["NAME CLUSTER READY UP-TO-DATE AVAILABLE ADOPTION", "evicted member1 2/2 2 2 Y"],
        "get",
        "deploy",
        "evicted",
    )

    shell("taint", "member1", "gone:NoExecute")
    shell.until_true(lambda: "Clusters: none\n" in shell("describe", "deploy", "evicted"))

    assert "\nEvicted from: member1 (TaintUntolerated)\n" in shell("describe", "deploy", "evicted")
    shell("untaint", "member1", "gone")
    shell.until_true(lambda: "Evicted from" not in shell("describe", "deploy", "evicted"))


def test_description_says_why_a_workload_has_no_placement(shell: Shell) -> None:
    template, policy = APP.replace("NAME", "idle").split("---")
    shell.apply(template)
    assert "Scheduled: no; no policy selects it\n" in shell("describe", "deploy", "idle")
    shell.apply(f"{policy.rstrip()}\n  dependentOverrides: [missing]\n")
    refused = "the policy idle was not applied: OverridePolicy missing does not exist"
    shell.until_true(lambda: f"Scheduled: no; {refused}\n" in shell("describe", "deploy", "idle"))
    shell("delete", "propagationpolicy", "idle")
    shell.apply(f"{policy.replace('{name: idle}', '{name: later}').rstrip()}\n  activationPreference: Lazy\n")
    marked = "the lazy policy later places it with its next write"
    shell.until_true(lambda: f"Scheduled: no; {marked}\n" in shell("describe", "deploy", "idle"))


def test_as_of_views_and_log_are_printed(shell: Shell) -> None:
    applied(shell, "four")
    shell.until(["NAME SCHEDULED FULLYAPPLIED", "four-deployment True True"], "get", "rb", "four-deployment")
    entries = json.loads(shell("timeline", "deploy", "four", "--json"))
    decided = next(entry for entry in entries if entry["type"] == "io.reballast.schedule-decided.v1")

    before = shell("get", "deploy", "four", "--as-of", str(entries[0]["number"]))
    assert "four   <none>    0/2" in before
    shell("get", "deploy", "four", "--as-of", str(entries[0]["number"] - 1), code=1)
    assert decided["data"]["clusters"] == [{"name": "member1", "replicas": 2}]
    assert "did not match the placement cluster affinity" in shell("explain", "deploy", "four")
    assert "template-applied" in shell("describe", "deploy", "four")
    newest = shell("log", "tail", "--no-follow", "-n", "3", "--topic", "specs", "--json").splitlines()
    assert all(json.loads(line)["position"].startswith("specs/") for line in newest)
    assert json.loads(shell("replay", "--json"))["counts"]
    shell("get", "deploy", "--as-of", "yesterday", code=1)
    assert "asOf: 'yesterday' is neither a duration, nor a time, nor a number or position" in shell.errors
    shell("get", "deploy", "--as-of", "2999-01-01T00:00:00Z", code=1)
    assert "2999-01-01T00:00:00Z is in the future" in shell.errors
    shell("get", "pods", "--as-of", "1m", code=1)
    assert shell.errors.startswith("error: --as-of: the log has no pods\n")
    for word in ("explain", "get"):
        shell(word, "deploy", "four", "--as-of", "0", code=1)
        assert 'deployment.apps "four" not found in namespace default as of 0\n' in shell.errors
    shell("explain", "pp", "four", code=1)
    assert "a PropagationPolicy has no placement to explain\n  see its events: " in shell.errors


def test_objects_are_printed_in_every_format(shell: Shell) -> None:
    applied(shell, "five")

    assert shell("get", "pp", "five", "-o", "name") == "propagationpolicy.policy.karmada.io/five\n"
    listed = json.loads(shell("get", "pp", "--json"))
    assert listed["kind"] == "List"
    assert "last-applied" not in shell("get", "pp", "five", "-o", "yaml")
    assert without_ages(shell("get", "pp", "-A"))[0] == "NAMESPACE NAME CONFLICT-RESOLUTION PRIORITY"
    for kind in ("cm", "pods", "deploy,cm"):
        shell("get", kind, "-n", "empty")
        assert shell.errors == "No resources found in empty namespace.\n"
    for words in (("cm", "-A", "-l", "no=one"), ("clusters", "-l", "no=one")):
        shell("get", *words)
        assert shell.errors == "No resources found.\n"


def test_commands_without_a_server_exit_with_3(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nowhere = Shell(tmp_path, capsys)

    nowhere("get", "deploy", code=3)
    assert f"start one with: reballast up --data {tmp_path}" in nowhere.errors
    (tmp_path / "endpoint.json").write_text('{"url": "http://127.0.0.1:9", "token": "x", "pid": 1}')
    nowhere("get", "deploy", code=3)
    assert "does not answer" in nowhere.errors
    (tmp_path / "endpoint.json").write_text("{")
    nowhere("get", "deploy", code=3)


def test_second_server_in_a_directory_is_refused(shell: Shell) -> None:
    shell("up", code=1)

    assert "another process holds the log" in shell.errors


@pytest.mark.slow
def test_killed_server_continues_after_a_restart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = tmp_path / "data"
    shell = Shell(data, capsys)
    with running(data, "--port", "0") as process:
        applied(shell, "six")
        shell.until(
            ["NAME CLUSTER READY UP-TO-DATE AVAILABLE ADOPTION", "six member1 2/2 2 2 Y"], "get", "deploy"
        )
        process.kill()
        process.wait(STOP_SECONDS)
    (data / "endpoint.json").unlink()

    with running(data):
        assert (data / "endpoint.json").stat().st_mode & 0o777 == 0o600
        assert os.getpid() != json.loads((data / "endpoint.json").read_bytes())["pid"]
        assert without_ages(shell("get", "deploy"))[1] == "six member1 2/2 2 2 Y"
        assert "the log and its views are verified, no findings" in shell("log", "verify", "--views")


def test_member_faults_are_set_and_removed(shell: Shell) -> None:
    assert shell("members").splitlines()[0].split() == ["NAME", "JOINED", "FAULTS", "START-UP", "WORKLOADS"]
    shell("fault", "member2", "slow", "--amount", "5")

    assert "member2   Y        slow (5 times), losing (1 report in 2)" in shell("fault", "member2", "losing")
    shell("fault", "member3", "down")
    shell.until_true(lambda: "member3 v1.36.2 Push False" in " ".join(shell("get", "clusters").split()))
    shell("heal", "member2")
    assert [member["slowness"] for member in json.loads(shell("heal", "member3", "--json"))] == [1, 1, 1]
    shell.until_true(lambda: "Push   True" in shell("get", "clusters", "-l", "!absent", "member3"))


def test_invalid_faults_are_refused(shell: Shell) -> None:
    shell("fault", "member9", "down", code=1)
    assert "no simulated member is named 'member9'; existing members: member1" in shell.errors
    shell("fault", "member1", "slow", "--amount", "2000000", code=1)
    assert "is not between 1 and 1000000" in shell.errors
    shell("fault", "member1", "down", "--amount", "2", code=2)
    shell("fault", "member1", "tired", code=2)
    shell("heal", "no/such member", code=1)


def test_object_is_shown_as_of_a_log_position(shell: Shell) -> None:
    applied(shell, "nine")
    shell("scale", "deploy", "nine", "--replicas", "7")
    entries = json.loads(shell("timeline", "deploy", "nine", "--json"))
    first, *_ = (entry["position"] for entry in entries if entry["type"].endswith("template-applied.v1"))

    then = json.loads(shell("get", "deploy", "nine", "-o", "json", "--as-of", first))

    assert then["spec"]["replicas"] == 2
    shell("get", "deploy", "nine", "--as-of", first.rpartition("/")[0] + "/999999", code=1)
    assert f"asOf: there is no record {first.rpartition('/')[0]}/999999: " in shell.errors


@pytest.mark.slow
def test_log_tail_follows_new_records(shell: Shell) -> None:
    applied(shell, "tailed")
    command = [sys.executable, "-m", "engine.cli", "log", "tail", "-n", "1", "--topic", "specs"]
    with subprocess.Popen(
        [*command, "--data", str(shell.directory)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as tail:
        assert tail.stdout is not None
        try:
            lines = [tail.stdout.readline() for _ in range(2)]
            for count in range(100):  # records written before the feed is open are not followed
                applied(shell, f"eight-{count}")
                if select.select([tail.stdout], [], [], 0.1)[0]:
                    lines.append(tail.stdout.readline())
                    break
        finally:
            tail.kill()

    heading, first, followed = lines
    for column in ("TIME", "EVENT", "POSITION", "CAUSE"):
        assert followed[heading.index(column)] != " " == followed[heading.index(column) - 1], column
    assert first.split()[2] == followed.split()[2] == "template-applied"


def test_up_prints_its_address_and_a_login_link(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "engine.cli", "up", "--data", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        starting, ready, browser, terminal = (process.stdout.readline().strip() for _ in range(4))
        assert "The address for the browser is valid for 15 minutes.\n" in iter(process.stdout.readline, "")
        page = httpx.get(browser.rpartition(" ")[2], follow_redirects=True, trust_env=False)
        process.terminate()

    assert starting == f"Starting on {tmp_path}; Ctrl-C stops it."
    assert 0 < float(ready.removeprefix("Ready after ").removesuffix(" s.")) < READY_SECONDS
    assert terminal.endswith(f"reballast get clusters --data {tmp_path}")
    assert page.status_code == 200
    assert "token=" not in str(page.url)
    assert process.returncode == 0
