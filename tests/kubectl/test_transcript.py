"""A kubectl session recorded on a real Kubernetes, compared command by command with Reballast."""

import difflib
from pathlib import Path
from typing import Final

import pytest

from tests.kubectl import transcripts

DIFFERS: Final = {
    "apply -f mistyped.yaml --server-side": "what is wrong with it is told as a bad request, with its type",
}
"""Commands that are answered otherwise, and why."""


@pytest.mark.slow
def test_session_prints_the_same_as_on_a_real_cluster(served: Path, tmp_path: Path) -> None:
    real = transcripts.recorded()
    ours = list(transcripts.played(served / "kubeconfig", tmp_path))

    assert [each.command for each in ours] == [each.command for each in real]
    wrong: list[str] = []
    for there, here in zip(real, ours, strict=True):
        if (there != here) != (there.command in DIFFERS):
            told = difflib.ndiff(
                [*there.printed.splitlines(), f"exit code {there.code}"],
                [*here.printed.splitlines(), f"exit code {here.code}"],
            )
            wrong += [f"$ kubectl {there.command}", *told]
    assert not wrong, "\n".join(wrong)
