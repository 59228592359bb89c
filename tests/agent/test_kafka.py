"""An agent on one API replica and users on another: works and reports pass through Kafka."""

import secrets
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.agent.conftest import Installation
from tests.agent.servers import Server, eventually, join, replicas_of, serving
from tests.builders.manifests import (
    deployment,
    on,
    policy,
    selector,
)
from tests.kubectl import control_planes
from tests.scaleout.processes import Worker


@pytest.mark.kafka
@pytest.mark.slow
@pytest.mark.timeout(400)
def test_works_and_reports_pass_between_replicas(
    kafka: str, installation: Installation, tmp_path: Path
) -> None:
    member, log = installation.member, f"kafka://{kafka}/a{secrets.token_hex(4)}"
    worker = Worker("worker", log, tmp_path)
    apis = [control_planes.replica(name, log, tmp_path) for name in ("agents", "users")]
    with ExitStack() as stack, control_planes.launched(worker, *apis):
        worker.wait_until(worker.has_shards)
        for api in apis:
            api.wait_until(api.answers)
        agent_api, user_api = (Server(api.data, stack) for api in apis)
        with serving(tmp_path, join(agent_api, "far", member.kubeconfig, tmp_path)) as agent:
            user_api.apply(deployment("by-kafka", 2), policy("by-kafka", on("far"), selector("by-kafka")))
            eventually(lambda: replicas_of(member, "by-kafka") == 2, "the Deployment")
            key = "default/by-kafka-deployment"
            eventually(lambda: user_api.member_status(key, "far").get("applied") is True, "the report")
            agent.kill()
            user_api.apply(deployment("by-kafka", 3))
            agent.launch()
            eventually(
                lambda: replicas_of(member, "by-kafka") == 3,
                "the Deployment written through the other replica",
            )
            user_api.delete("deployment", "by-kafka")
            eventually(lambda: replicas_of(member, "by-kafka") is None, "the removal")
            eventually(
                lambda: not user_api.ask("works", cluster="far").get("items"), "the removal of the works"
            )
