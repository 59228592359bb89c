"""Remedies and hints name the next command with the options of the present one."""

from pathlib import Path

import pytest

from engine.cli import failures, main, next_commands


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ("get deploy", "reballast log verify"),
        ("get deploy --data d", "reballast log verify --data d"),
        ("get deploy --data=d", "reballast log verify --data=d"),
        ("audit --log l", "reballast log verify --log l"),
        ("audit --data d --log l", "reballast log verify --log l --data d"),
    ],
)
def test_next_command_reads_the_same_log(arguments: str, shown: str) -> None:
    next_commands.store_arguments(arguments.split())
    assert next_commands.check_log() == f"check the log: {shown}"


def test_options_of_the_next_command_are_quoted_for_the_shell() -> None:
    next_commands.store_arguments(["get", "works", "--data", "my data", "--as-of", "10m"])
    assert next_commands.command("get works", "--as-of") == "reballast get works --as-of 10m --data 'my data'"
    assert next_commands.command("timeline deploy web") == "reballast timeline deploy web --data 'my data'"


def test_next_command_names_a_namespace_other_than_the_default() -> None:
    assert [next_commands.namespace(name) for name in ("", "default", "shop")] == ["", "", " -n shop"]


def test_failed_command_shows_the_next_one_for_its_own_directory(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.run(["fault", "m1", "down", "--amount", "2", "--data", str(tmp_path)]) == failures.USAGE
    assert f"  reballast fault m1 down --data {tmp_path}\n" in capsys.readouterr().err
