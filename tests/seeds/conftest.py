"""One server for all documents, and one with its log on Kafka; each test leaves them empty.

The users of the first have the ``reballast`` commands, or kubectl.
"""

import secrets
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.cli.servers import running
from tests.kubectl.commands import Kubectl
from tests.seeds.kubectl_users import KubectlUser
from tests.seeds.users import OF_COMMANDS, OF_KUBECTL, User

_CLUSTER: Final = """
apiVersion: cluster.karmada.io/v1alpha1
kind: Cluster
metadata: {name: NAME}
spec: {syncMode: Push}
status:
  apiEnablements: [{groupVersion: apps/v1, resources: [{kind: Deployment}]}]
"""


@pytest.fixture(scope="package")
def documented(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The data directory of a running server with its three members."""
    directory = tmp_path_factory.mktemp("seeds")
    started_s = time.monotonic()
    with running(directory):
        print(f"ready {time.monotonic() - started_s:.2f} s after the start of the process")  # noqa: T201
        yield directory


@pytest.fixture(scope="package")
def documented_on_kafka(kafka: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The data directory of a server with its log on Kafka."""
    directory = tmp_path_factory.mktemp("seeds-on-kafka")
    with running(directory, "--log", f"kafka://{kafka}/d{secrets.token_hex(4)}"):
        yield directory


@pytest.fixture(scope="package")
def kubectl(documented: Path, tmp_path_factory: pytest.TempPathFactory) -> Kubectl:
    """Kubectl for the server with its log on SQLite."""
    return Kubectl(documented / "kubeconfig", tmp_path_factory.mktemp("home"), context="karmada-apiserver")


@pytest.fixture(params=[*OF_COMMANDS, *OF_KUBECTL])
def user(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[User]:
    """A user of either server, with the commands or with kubectl: all must show the same."""
    server = request.getfixturevalue(request.param)
    if isinstance(server, Kubectl):
        user: User = KubectlUser(request.getfixturevalue("documented"), server, monkeypatch)
    else:
        user = User(server)
    yield user
    user.clean_up()


@pytest.fixture
def hybrid(user: User) -> User:
    """The user of a federation with two local and two public clusters, none of them simulated."""
    for name in ("local-member1", "local-member2", "public-cloud-member1", "public-cloud-member2"):
        user.apply(_CLUSTER.replace("NAME", name))
    return user
