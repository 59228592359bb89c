"""``python -m tests.clusters up [-- COMMAND ...]``: run a real cluster until Ctrl-C, or while a command runs."""

import os
import signal
import subprocess
import sys
from typing import Final

from tests.clusters.processes import ClusterError, LocalCluster
from tests.clusters.programs import BuildError

KUBECONFIG: Final = "REBALLAST_TEST_KUBECONFIG"
PROCESSES: Final = "REBALLAST_TEST_CLUSTER"
"""Names the directory where each program of the cluster has its number, so that a test can freeze it."""

_USAGE: Final = "usage: python -m tests.clusters up [-- COMMAND ...]"
_WRONG: Final = 2


def main(words: list[str]) -> int:
    """Return the exit code, that of the command if there is one."""
    if words[:1] != ["up"] or words[1:2] not in ([], ["--"]):
        sys.stderr.write(_USAGE + "\n")
        return _WRONG
    try:
        with LocalCluster() as cluster:
            sys.stdout.write(f"{cluster.kubeconfig}\n")
            sys.stdout.flush()
            if words[2:]:
                named = {KUBECONFIG: str(cluster.kubeconfig), PROCESSES: str(cluster.directory)}
                return subprocess.run(words[2:], env={**os.environ, **named}, check=False).returncode
            signal.pause()
            return 0
    except (ClusterError, BuildError) as error:
        sys.stderr.write(f"{error}\n")
        return 1


def _end(number: int, _: object) -> None:
    """Exit in order, so that the cluster's processes are stopped too."""
    sys.exit(128 + number)


if __name__ == "__main__":
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, _end)
    sys.exit(main(sys.argv[1:]))
