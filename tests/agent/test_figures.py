"""Metrics and readiness of agents for Prometheus."""

from pathlib import Path

import httpx
import pytest

from tests.agent import proxy
from tests.agent.conftest import Installation
from tests.agent.servers import deployment_path, eventually, join, replicas_of, serving
from tests.builders.manifests import (
    deployment,
    on,
    policy,
    selector,
)

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]


def test_agent_metrics_count_writes_and_show_member_reachability(
    installation: Installation, tmp_path: Path
) -> None:
    control, member = installation.control, installation.member
    member.post("/apis/apps/v1/namespaces/default/deployments", deployment("theirs", 2))
    with proxy.before(member) as between:
        configuration = join(control, "seen", between.kubeconfig(tmp_path / "kubeconfig"), tmp_path)
        with serving(tmp_path, configuration, grace=20, is_watched=True) as agent:
            where = agent.watched_at()

            def count(name: str) -> float:
                text = httpx.get(f"{where}/metrics").text
                (line,) = (line for line in text.splitlines() if line.startswith(f"reballast_agent_{name}{{"))
                return float(line.rpartition(" ")[2])

            control.apply(deployment("ours", 2), policy("ours", on("seen"), selector("ours")))
            eventually(lambda: replicas_of(member, "ours") == 2, "a Deployment")
            member.patch(deployment_path("ours"), {"spec": {"replicas": 5}})
            eventually(lambda: count("drifts_total") >= 1, "the corrected drift")
            assert count("applied_total") > count("drifts_total")
            assert count("reports_total") > 0
            assert httpx.get(f"{where}/readyz").status_code == 200

            control.apply(deployment("theirs", 2), policy("theirs", on("seen"), selector("theirs")))
            eventually(lambda: count("refused_total") >= 1, "one that is not ours")
            between.is_throttling = True
            control.delete("Deployment", "ours")
            eventually(lambda: count("throttled_total") >= 1, "a refusal")
            between.is_throttling = False
            eventually(lambda: count("removed_total") == 1, "a removal")

            between.fall()
            eventually(lambda: count("reachable") == 0, "the removed member")
            assert "the API of seen does not answer" in httpx.get(f"{where}/readyz").text
            between.is_down = False
            eventually(
                lambda: httpx.get(f"{where}/readyz").status_code == 200, "a cluster that is ready again"
            )
            assert count("unreachable_total") >= 1
