"""With kubectl: a policy without tolerations of its own gets the default toleration seconds of the server."""

from pathlib import Path
from typing import Final, cast

import msgspec
import pytest

from engine.cli import failures, main
from engine.karmada.default_tolerations import NOT_READY
from events import times
from tests.cli.failover_objects import CONFIRMED_S, TAINTS, WEB
from tests.cli.servers import Shell
from tests.kubectl.control_planes import on_sqlite

SECONDS: Final = 7
OPTION: Final = "--default-not-ready-toleration-seconds"


@pytest.mark.slow
def test_workload_leaves_failing_cluster_after_default_toleration_seconds(
    home_directory: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with on_sqlite(tmp_path / "data", OPTION, str(SECONDS)) as control_plane:
        kubectl, shell = control_plane.kubectl(home_directory), Shell(tmp_path / "data", capsys)
        kubectl("apply", "-f", "-", stdin=WEB + "---" + TAINTS.replace("key: not-ready", f"key: {NOT_READY}"))
        where = ("rb", "web-deployment", "-o", "jsonpath={.spec.clusters[*].name}")
        kubectl.until_true(
            lambda: kubectl("get", *where) == "member1 member2", lambda: kubectl("describe", "rb")
        )
        added = "jsonpath={.spec.placement.clusterTolerations[*].tolerationSeconds}"
        assert kubectl("get", "pp", "web", "-o", added) == str(SECONDS)

        shell("fault", "member1", "down")
        taint = ("cluster", "member1", "-o", "jsonpath={.spec.taints[?(@.effect=='NoExecute')].timeAdded}")
        shell.until_true(lambda: kubectl("get", *taint) != "", CONFIRMED_S)
        tainted_ms = times.from_text(kubectl("get", *taint))
        kubectl.until_true(lambda: kubectl("get", *where) == "member2", lambda: kubectl("describe", "rb"))
        left_ms = _evicted_ms(shell("timeline", "deploy", "web", "--json"))
        # Far below the 300 seconds that Kubernetes gives; a busy machine decides later than the deadline.
        assert SECONDS * 1000 <= left_ms - tainted_ms < 60_000


def _evicted_ms(timeline: str) -> int:
    entries = cast("list[dict[str, str]]", msgspec.json.decode(timeline))
    (eviction,) = [entry for entry in entries if "eviction-started" in entry["type"]]
    return times.from_text(eviction["time"])


@pytest.mark.parametrize("wrong", ["-1", "soon", "99999999999"])
def test_invalid_default_toleration_seconds_are_refused(
    wrong: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.run(["up", "--data", str(tmp_path), f"{OPTION}={wrong}"]) == failures.USAGE
    printed = capsys.readouterr()
    assert OPTION in printed.out + printed.err
