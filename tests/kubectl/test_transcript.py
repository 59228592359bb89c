"""A kubectl session recorded on a real Kubernetes, compared command by command with Reballast."""

import difflib
from pathlib import Path
from typing import Final

import pytest

from tests.kubectl import transcripts

DIFFERS: Final = {
    "apply -f mistyped.yaml --server-side": "the error is a bad request that names the type",
}
"""Commands that are answered otherwise, and why."""


@pytest.mark.slow
def test_session_prints_the_same_as_on_a_real_cluster(served: Path, tmp_path: Path) -> None:
    real = transcripts.recorded()
    played = list(transcripts.played(served / "kubeconfig", tmp_path))

    assert [command.command for command in played] == [command.command for command in real]
    wrong: list[str] = []
    for expected, actual in zip(real, played, strict=True):
        if (expected != actual) != (expected.command in DIFFERS):
            difference = difflib.ndiff(
                [*expected.printed.splitlines(), f"exit code {expected.code}"],
                [*actual.printed.splitlines(), f"exit code {actual.code}"],
            )
            wrong += [f"$ kubectl {expected.command}", *difference]
    assert not wrong, "\n".join(wrong)
