"""Output on a terminal: widths, colours, watches, completion, JSON errors, and kept ports."""

import fcntl
import json
import os
import pty
import socket
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

from engine.cli import failures, main, options, output, serve
from engine.process import kept_ports
from tests.cli.deployments import applied
from tests.cli.servers import STOP_SECONDS, Shell, running, without_ages

COLUMNS = 100
CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n"


def on_terminal(*words: str, **environment: str) -> str:
    """Return the output of a command on a terminal."""
    control, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, COLUMNS, 0, 0))
    inherited = {name: text for name, text in os.environ.items() if name not in {"NO_COLOR", "COLUMNS"}}
    command = [sys.executable, "-m", "engine.cli", *words]
    env = inherited | {"TERM": "xterm"} | environment
    with subprocess.Popen(command, stdout=terminal, stderr=subprocess.DEVNULL, env=env):
        os.close(terminal)
        output = b""
        while chunk := _read(control):
            output += chunk
    os.close(control)
    return output.decode()


def _read(control: int) -> bytes:
    try:
        return os.read(control, 65_536)
    except OSError:  # the other end was closed
        return b""


@pytest.mark.slow
def test_timeline_is_truncated_on_a_terminal_and_complete_in_a_pipe(shell: Shell) -> None:
    applied(shell, "narrow")
    words = ("timeline", "deploy", "narrow")

    lines = on_terminal(*words, "--data", str(shell.directory), TERM="dumb").splitlines()

    assert len(lines) > 1
    assert max(map(len, lines)) <= COLUMNS
    assert lines[0].split() == ["NUMBER", "TIME", "EVENT", "SUMMARY"]
    assert shell(*words).splitlines()[0].split()[3:] == ["POSITION", "CAUSE", "SUMMARY"]


def test_last_cell_of_a_long_row_follows_below_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(output, "width", lambda: 30)
    output.table(
        ("CLUSTER", "FAILED"), [("a", "-"), ("b", "it has a taint that is not tolerated")], wraps=True
    )
    assert capsys.readouterr().out.splitlines() == [
        "CLUSTER   FAILED",
        "a         -",
        "b",
        "    it has a taint that is not",
        "    tolerated",
    ]


def test_lines_of_a_text_are_wrapped_with_their_indent(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(output, "width", lambda: 30)
    output.print_text("\nStep 1: create a Deployment and a policy\n    member3: it has a taint that is new")
    assert capsys.readouterr().out.splitlines() == [
        "",
        "Step 1: create a Deployment",
        "and a policy",
        "    member3: it has a taint",
        "    that is new",
    ]


def test_heading_of_a_narrow_table_is_wrapped_like_its_rows(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(output, "width", lambda: 20)
    output.table(("CLUSTER", "RECOVERED", "FAILED"), [("a", "never", "full")], wraps=True)
    assert capsys.readouterr().out.splitlines() == [
        "CLUSTER   RECOVERED",
        "    FAILED",
        "a         never",
        "    full",
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("environment", "coloured"), [({}, True), ({"TERM": "dumb"}, False), ({"NO_COLOR": "1"}, False)]
)
def test_headings_are_bold_only_on_capable_terminals_without_no_color(
    shell: Shell, environment: dict[str, str], coloured: bool
) -> None:
    shown = on_terminal("get", "clusters", "--data", str(shell.directory), **environment)

    assert "member1" in shown
    assert ("\x1b" in shown) is coloured


def test_unknown_command_is_reported_with_a_suggestion_before_imports() -> None:
    program = (
        "import sys\nfrom engine.cli import main\ncode = main.run(['aplly'])\n"
        "print(code, sorted({'cyclopts', 'httpx', 'rich'} & set(sys.modules)))"
    )

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout == "2 []\n"
    assert done.stderr == 'error: unknown command "aplly"\n  did you mean apply?\n'


def test_errors_are_json_objects_with_the_option_json(shell: Shell, tmp_path: Path) -> None:
    shell("get", "deploy", "nothing", "--json", code=1)
    error = json.loads(shell.errors)["error"]
    assert (error["exitCode"], error["remedy"]) == (
        1,
        f"see: reballast get deployments -A --data {shell.directory}",
    )
    assert error["message"] == 'deployment.apps "nothing" not found in namespace default'
    shell("get", "deploy", "--bogus", "--json", code=2)
    assert json.loads(shell.errors)["error"]["exitCode"] == 2
    path = tmp_path / "wrong.yaml"
    path.write_text(CONFIG.format(name="a/b"))
    (result,) = json.loads(shell("apply", "-f", str(path), "--json", code=1))
    assert result["problems"][0]["line"] == 3
    assert json.loads(shell.errors)["error"]["message"].startswith(f"{path}:3: document 1: configmap/a/b: ")


def test_several_kinds_are_listed_and_wide_tables_have_more_columns(shell: Shell) -> None:
    applied(shell, "several")
    shell.until_true(lambda: "several-deployment" in shell("get", "rb"))

    tables = [table.splitlines() for table in shell("get", "deploy,pp,rb").split("\n\n")]
    wide = shell("get", "deploy", "several", "-o", "wide").splitlines()

    assert [table[0].split()[:2] for table in tables] == [
        ["NAME", "CLUSTER"],
        ["NAME", "CONFLICT-RESOLUTION"],
        ["NAME", "SCHEDULED"],
    ]
    assert wide[0].split()[-4:] == ["POLICY", "CONTAINERS", "IMAGES", "LABELS"]
    assert wide[1].split()[-4:] == ["several", "c", "nginx", "app=several"]
    listed = json.loads(shell("get", "deploy,pp", "--json"))
    assert {item["kind"] for item in listed["items"]} >= {"Deployment", "PropagationPolicy"}


MEMBERS = ("member1", "member2", "member3")


@pytest.mark.slow
@pytest.mark.parametrize(("kinds", "first"), [("cm,clusters", ["NAME", *MEMBERS]), ("cm", [])])
def test_watch_prints_changed_rows(shell: Shell, tmp_path: Path, kinds: str, first: list[str]) -> None:
    command = [sys.executable, "-m", "engine.cli", "get", kinds, "-w", "--data", str(shell.directory)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as watch:
        assert watch.stdout is not None
        assert watch.stderr is not None
        try:
            assert [watch.stdout.readline().split()[0] for _ in first] == first
            if not first:
                assert watch.stderr.readline() == "No resources found in default namespace.\n"
            path = tmp_path / "watched.yaml"
            path.write_text(CONFIG.format(name="watched"))
            shell("apply", "-f", str(path))
            assert watch.stdout.readline().split()[0] == "NAME"
            assert watch.stdout.readline().split()[0] == "watched"
            shell("delete", "-f", str(path))
            removed = watch.stdout.readline().split()
            assert (removed[0], removed[-1]) == ("watched", "(removed)")
        finally:
            watch.kill()
    shell("get", "cm", "-w", "-o", "yaml", code=2)


def test_instant_may_be_a_duration_ago() -> None:
    assert options.instant("10m", 1_716_630_591_000) == "2024-05-25T09:39:51.000Z"
    assert options.instant("1d1h1m1s", 1_716_630_591_000) == "2024-05-24T08:48:50.000Z"
    for word in ("", "120", "decisions/3/41", "2024-05-25T09:49:51Z", "yesterday"):
        assert options.instant(word, 1_716_630_591_000) == word


def test_ages_are_relative_to_the_as_of_time(shell: Shell) -> None:
    applied(shell, "aged")
    entry = json.loads(shell("timeline", "deploy", "aged", "--json"))[0]
    time.sleep(2.1)

    for moment in (str(entry["number"]), entry["position"], entry["time"]):
        heading, row = shell("get", "deploy", "aged", "--as-of", moment).splitlines()
        assert row.split()[heading.split().index("AGE")] == "0s"
    shell("get", "deploy", "aged", "--as-of", "1h", code=1)


@pytest.mark.slow
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_contain_the_commands(capsys: pytest.CaptureFixture[str], shell: str) -> None:
    assert main.run(["completion", shell]) == failures.OK
    script = capsys.readouterr().out
    assert "rebalance" in script or "unjoin" in script
    assert "--as-of" in script or "as-of" in script


@pytest.mark.slow
def test_shells_complete_file_names(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    main.run(["completion", "bash"])
    (tmp_path / "change.yaml").touch()
    words = "COMP_WORDS=(reballast apply -f chan); COMP_CWORD=3"
    script = f'{capsys.readouterr().out}\n{words}; _reballast; echo "${{COMPREPLY[@]}}"'
    completed = subprocess.run(
        ["/bin/bash", "-s"],
        input=script,
        cwd=tmp_path,
        capture_output=True,
        check=True,
        text=True,
        timeout=60,
    )
    assert completed.stdout == "change.yaml\n"


def test_up_prints_the_command_by_its_path(monkeypatch: pytest.MonkeyPatch) -> None:
    directory = Path(sys.executable).parent
    monkeypatch.setattr(sys, "argv", [str(directory / "reballast")])
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    assert serve.command() == (f"{directory}/reballast", f"export PATH={directory}:$PATH")
    monkeypatch.setenv("PATH", f"{directory}:/usr/bin:/bin")
    assert serve.command() == ("reballast", "")


@pytest.mark.slow
def test_ports_are_reused_after_a_restart_while_they_are_free(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "engine.cli", "up", "--json", "--no-members", "--data", str(tmp_path)]

    def started() -> tuple[str, str, list[int]]:
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as up:
            assert up.stdout is not None
            lines: list[str] = []
            while not lines or lines[-1] != "}\n":
                lines.append(up.stdout.readline())
            up.terminate()
            up.wait(STOP_SECONDS)
        endpoint = json.loads("".join(lines))
        return endpoint["url"], endpoint["kubeUrl"], endpoint["lostPorts"]

    first = started()
    assert started() == first
    kept = kept_ports.read(tmp_path)
    with socket.create_server(("127.0.0.1", kept.port)):
        url, kube_url, lost = started()
    assert url != first[0]
    assert (kube_url, lost) == (first[1], [kept.port])


def test_invalid_ports_file_is_ignored(tmp_path: Path) -> None:
    for content in (b"{", b'{"port": 99999}', b'{"port": "a"}'):
        (tmp_path / "ports.json").write_bytes(content)
        assert kept_ports.read(tmp_path) == kept_ports.Ports()


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_tour_prints_its_server_and_how_to_see_the_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with running(tmp_path):
        played = Shell(tmp_path, capsys)
        shown = played("tour").splitlines()
        assert (
            shown[0]
            == f"Running on the server of {tmp_path}; its log keeps the records, the objects are deleted at the end."
        )
        assert shown[-1] == f"See what happened: reballast timeline deploy foo --data {tmp_path}"
        events = [line.split()[2] for line in played("timeline", "deploy", "foo").splitlines()[1:]]
        assert "reschedule-triggered" in events
        report = json.loads(played("tour", "--json"))
        assert (report["failed"], len(report["checks"])) == (0, 8)
        assert without_ages(played("get", "deploy")) == []
