"""An agent of a control plane whose query API uses TLS."""

from contextlib import ExitStack
from pathlib import Path

import pytest

from engine.agent import configuration
from tests.agent.servers import eventually, join, replicas_of, serving, up
from tests.builders.manifests import (
    deployment,
    on,
    policy,
    selector,
)

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]


def test_agent_trusts_the_authority_written_by_join(tmp_path: Path) -> None:
    with ExitStack() as stack:
        control, member = up(tmp_path / "control", stack, "--tls"), up(tmp_path / "member", stack)
        path = join(control, "edge", member.kubeconfig, tmp_path)
        written = configuration.read(path)
        assert written.server.startswith("https://")
        assert written.authority.encode() == (tmp_path / "control" / "kube-ca.pem").read_bytes()
        assert path.stat().st_mode & 0o777 == 0o600
        with serving(tmp_path, path):
            control.apply(deployment("secured", 2), policy("secured", on("edge"), selector("secured")))
            eventually(lambda: replicas_of(member, "secured") == 2, "the Deployment")
