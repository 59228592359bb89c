"""``reballast drill`` on a real server: which failures are absorbed."""

import json
from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.cli import servers
from tests.cli.planned_objects import FAILING, OBJECTS, placed, run, written
from tests.cli.servers import Shell

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("cleared")]


def test_drill_shows_which_failures_are_absorbed(shell: Shell, tmp_path: Path) -> None:
    shell.apply(FAILING)
    run(shell, written(tmp_path / "objects.yaml", OBJECTS))
    lines = [line.split() for line in shell("drill", "--by", "cluster").splitlines()]
    assert [line[:6] for line in lines[1:]] == [
        ["cluster", f"member{number}", "1", "1", "1", "0"] for number in (1, 2, 3)
    ]

    large = OBJECTS.replace("cpu: 100m", 'cpu: "1000"')
    run(shell, written(tmp_path / "large.yaml", large))
    shell.until_true(lambda: set(placed(shell).values()) == {3})
    shown = shell("drill", "--by", "cluster", code=2)
    # The needs come last, since a narrow terminal cuts the end of a line.
    assert shown.splitlines()[2].endswith("3          never       cpu 3k")
    assert "cluster member2: default/web-deployment is missing 3 replicas" in shown
    assert "cluster member2: member1 needs 3k more cpu for 3 replicas" in shown
    (_, second, _) = json.loads(shell("drill", "--by", "cluster", "--json", code=2))
    assert second["outage"] == {"domain": "cluster", "name": "member2", "clusters": ["member2"]}
    assert (second["missing"], second["needed"], second["recoveredMs"]) == (3, {"cpu": "3k"}, None)
    assert second["remedies"] == [{"cluster": "member1", "replicas": 3, "capacity": {"cpu": "3k"}}]


def test_drill_fails_clusters_of_one_place_together(shell: Shell) -> None:
    outcomes = json.loads(shell("drill", "--json"))
    outages = {outcome["outage"]["domain"]: outcome["outage"]["clusters"] for outcome in outcomes}
    assert outages["cluster"] == ["member3"]
    assert len({tuple(outcome["outage"]["clusters"]) for outcome in outcomes}) == len(outcomes)


def test_server_drills_periodically_and_exports_the_results(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = tmp_path / "data"
    with servers.running(directory, "--drill-every", "1s"):
        shell = Shell(directory, capsys)
        run(shell, written(tmp_path / "objects.yaml", OBJECTS.replace("cpu: 100m", 'cpu: "1000"')))
        endpoint = json.loads((directory / "endpoint.json").read_text())

        def missing() -> dict[str, float]:
            headers = {"authorization": f"Bearer {endpoint['token']}"}
            text = httpx.get(f"{endpoint['url']}/metrics", headers=headers, trust_env=False).text
            return {
                sample.labels["name"]: sample.value
                for family in text_string_to_metric_families(text)
                for sample in family.samples
                if sample.name == "reballast_drill_missing_replicas" and sample.labels["domain"] == "cluster"
            }

        # No policy evicts workloads, so the replicas in a failed cluster are missing.
        shell.until_true(lambda: missing() == {"member1": 3, "member2": 3, "member3": 3})
