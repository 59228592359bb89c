"""Run a real cluster or a real Karmada until Ctrl-C, or while a command runs; or Karmada's own tests, or a comparison.

``python -m tests.clusters up|karmada [-- COMMAND ...]``, ``python -m tests.clusters conformance [FOCUS ...]``,
``python -m tests.clusters compare [--scheduler] [FIRST-LAST]``.
"""

import os
import signal
import subprocess
import sys
from typing import Final

from tests.clusters import conformance
from tests.clusters.comparison import command as comparison
from tests.clusters.karmada import Karmada
from tests.clusters.processes import ClusterError, LocalCluster
from tests.clusters.programs import BuildError

KUBECONFIG: Final = "REBALLAST_TEST_KUBECONFIG"
PROCESSES: Final = "REBALLAST_TEST_CLUSTER"
"""Names the directory where each program of the cluster has its number, so that a test can freeze it."""

KARMADA: Final = "REBALLAST_TEST_KARMADA_CONFIG"
"""Names the kubeconfig of a real Karmada."""

_USAGE: Final = (
    "usage: python -m tests.clusters up|karmada [-- COMMAND ...] | conformance [FOCUS ...] "
    "| compare [--scheduler] [FIRST-LAST]"
)
_WRONG: Final = 2
_OF_THEIR_OWN: Final = {"conformance": conformance.main, "compare": comparison.main}


def main(words: list[str]) -> int:
    """Return the exit code, that of the command if there is one."""
    kind, command = "".join(words[:1]), words[1:]
    is_cluster = kind in {"up", "karmada"} and command[:1] in ([], ["--"])
    if kind not in _OF_THEIR_OWN and not is_cluster:
        sys.stderr.write(_USAGE + "\n")
        return _WRONG
    try:
        if kind in _OF_THEIR_OWN:
            return _OF_THEIR_OWN[kind](command)
        with LocalCluster() if kind == "up" else Karmada() as cluster:
            sys.stdout.write(f"{cluster.kubeconfig}\n")
            sys.stdout.flush()
            if command[1:]:
                config = KUBECONFIG if kind == "up" else KARMADA
                named = {config: str(cluster.kubeconfig), PROCESSES: str(cluster.directory)}
                return subprocess.run(command[1:], env={**os.environ, **named}, check=False).returncode
            signal.pause()
            return 0
    except (ClusterError, BuildError) as error:
        sys.stderr.write(f"{error}\n")
        return 1


def _end(number: int, _: object) -> None:
    """Exit in order, so that the cluster's processes are stopped too."""
    sys.exit(128 + number)


if __name__ == "__main__":
    for signal_number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signal_number, _end)
    sys.exit(main(sys.argv[1:]))
