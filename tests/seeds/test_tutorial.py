"""The rebalancer's tutorial, as in its English and Chinese versions, which show the same."""

from pathlib import Path

import pytest
import yaml

from tests.cli.servers import editor
from tests.seeds.steps import shows
from tests.seeds.users import COMMANDS_ONLY, User, plain, text

pytestmark = [pytest.mark.slow, COMMANDS_ONLY]

GET = ("get", "deploy", "foo")
TAINT = "workload-rebalancer-test:NoExecute"
SPREAD = plain("""\
NAME   CLUSTER   READY   UP-TO-DATE   AVAILABLE   AGE   ADOPTION
foo    member1   2/2     2            2           20s   Y
foo    member2   1/1     1            1           20s   Y
""")
FAILED_OVER = plain("""\
NAME   CLUSTER   READY   UP-TO-DATE   AVAILABLE   AGE   ADOPTION
foo    member2   3/3     3            3           57s   Y
""")
TIMES = ("creationTimestamp", "finishTime")
ADDED = ("resourceVersion", "uid")


@shows("tutorial 1", "tutorial 2", "tutorial 3", "tutorial 4", "tutorial 5", "tutorial 6")
@shows("rebalance scenario 1")
def test_tutorial_prints_the_output_that_it_shows(
    user: User, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Step 1
    user.apply("tutorial/deployment")
    user.until(SPREAD, *GET)
    in_member2 = {line.split()[0] for line in user("get", "pods").splitlines() if " member2 " in line}

    # Step 2
    assert user.taint("member1", TAINT) == "cluster/member1 tainted\n"
    user.until(FAILED_OVER, *GET)
    assert user("taint", "clusters", "member1", f"{TAINT}-") == "cluster/member1 untainted\n"
    assert plain(user(*GET)) == FAILED_OVER

    # Step 3
    created = user.apply("tutorial/workload-rebalancer")
    assert created == "workloadrebalancer.apps.karmada.io/demo created\n"

    # Step 5 is awaited before step 4 is checked, as a reader would do.
    user.until(SPREAD, *GET)
    assert in_member2 <= user.pods()
    assert _is_in_events(
        "schedule-decided", "clusters=[member1:2, member2:1]", user("describe", "deploy", "foo")
    )

    # Step 4
    shown = user("get", "workloadrebalancer", "demo", "-o", "yaml")
    assert _timeless(shown) == _timeless(text("tutorial/status"))
    assert yaml.safe_load(shown).keys() == yaml.safe_load(text("tutorial/status")).keys()

    # Step 6
    monkeypatch.setenv(
        "EDITOR", editor(tmp_path, "text.replace('spec:', 'spec:\\n  ttlSecondsAfterFinished: 300')")
    )
    assert user("edit", "workloadrebalancer", "demo") == "workloadrebalancer.apps.karmada.io/demo edited\n"
    after = yaml.safe_load(user("get", "workloadrebalancer", "demo", "-o", "yaml"))
    assert after["spec"] == yaml.safe_load(text("tutorial/workload-rebalancer-ttl"))["spec"]
    assert after["metadata"]["generation"] == 2
    assert plain(user(*GET)) == SPREAD


def _timeless(shown: str) -> list[str]:
    """Return the lines without the times of this run and of the document, and without our additional fields."""
    lines = [line for line in shown.splitlines() if line.strip().partition(":")[0] not in ADDED]
    return [line.partition('"')[0] if line.strip().partition(":")[0] in TIMES else line for line in lines]


def _is_in_events(kind: str, words: str, described: str) -> bool:
    return any(kind in line and words in line for line in described.splitlines())
