"""A user at a terminal: runs commands and reads their output.

The commands run in the test process: a process per command would take longer than the command.
"""

import contextlib
import io
import json
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, cast

import pytest
import yaml

from engine.cli import main
from events.json_values import Json, at, object_at
from tests import waiting
from tests.cli.servers import without_ages

OF_COMMANDS: Final = ["documented", pytest.param("documented_on_kafka", marks=pytest.mark.kafka)]
"""Parameters of the fixture ``user``: the servers whose users have the ``reballast`` commands."""
OF_KUBECTL: Final = ["kubectl"]
COMMANDS_ONLY: Final = pytest.mark.parametrize("user", OF_COMMANDS, indirect=True)
"""For tests of results that kubectl does not show."""
KUBECTL_ONLY: Final = pytest.mark.parametrize("user", OF_KUBECTL, indirect=True)
MANIFESTS: Final = Path(__file__).parent / "manifests"
NGINX: Final = """
  resourceSelectors:
    - apiVersion: apps/v1
      kind: Deployment
      name: nginx
""".strip("\n")
_ELIDED: Final = "  #..."
_TAKEN: Final = ("allocated", "allocating")
_POD: Final = re.compile(r"^(\S+?)-[a-z0-9]+-[a-z0-9]+ ")


class User:
    """Runs commands on the server of a directory; records what must be deleted at the end."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._applied: list[str] = []
        self._tainted: set[str] = set()
        self.errors = ""

    def __call__(self, *words: str, code: int | None = 0, stdin: str = "") -> str:
        """Run a command and return its output; fail if the exit code is not ``code`` (None accepts any)."""
        printed, errors = io.StringIO(), io.StringIO()
        with (
            pytest.MonkeyPatch.context() as patches,
            contextlib.redirect_stdout(printed),
            contextlib.redirect_stderr(errors),
        ):
            patches.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
            exit_code = main.run([*words, "--data", str(self._directory)])
        self.errors = errors.getvalue()
        assert code in {None, exit_code}, f"{words}: {exit_code}\n{printed.getvalue()}{self.errors}"
        return printed.getvalue()

    def apply(self, manifest: str, *options: str, code: int = 0) -> str:
        """Apply the text of a manifest, or a file of the documents by its name."""
        if "\n" in manifest:
            self._applied.append(manifest)
            return self("apply", "-f", "-", *options, stdin=manifest, code=code)
        self._applied.append(text(manifest))
        return self("apply", "-f", str(MANIFESTS / f"{manifest}.yaml"), *options, code=code)

    def make_as_planned(self, directory: Path, *words: str, stdin: str = "") -> dict[str, dict[str, int]]:
        """Plan a change, make it, and wait until the plan's check confirms it; return the clusters of what moves."""
        if stdin:
            self._applied.append(stdin)
        if words[0] == "taint":
            self._tainted.add(words[1])
        file = str(directory / "plan.json")
        prediction = json.loads(self("plan", *words, "-o", file, "--json", stdin=stdin, code=None))[
            "prediction"
        ]
        self("apply", "--plan", file)
        self.until_true(lambda: self._is_as_planned(file), lambda: self("plan", "check", file, code=None))
        return {
            change["key"]: change["after"]
            for change in prediction["changed"]
            if change["before"] != change["after"]
        }

    def _is_as_planned(self, file: str) -> bool:
        output = self("plan", "check", file, "--json", code=None)
        return bool(output) and all(
            workload["actual"] == workload["predicted"] for workload in json.loads(output)["workloads"]
        )

    def taint(self, cluster: str, taint: str) -> str:
        """Taint a cluster, with the syntax of karmadactl."""
        self._tainted.add(cluster)
        return self("taint", "clusters", cluster, taint)

    def until(self, expected: Sequence[str], *words: str) -> None:
        """Repeat a command until it prints this table, without ages and random suffixes of pods.

        An object requested by name may not exist yet.
        """
        code = None if expected else 0
        self.until_true(
            lambda: plain(self(*words, code=code)) == list(expected),
            lambda: f"{words}\n{self(*words, code=None)}",
        )

    def until_placed(self, binding: str, clusters: str) -> None:
        """Wait until a binding has this placement: ``member1:2, member2:1``."""
        self.until_true(
            lambda: self.placed(binding) == clusters, lambda: f"{binding} is placed on {self.placed(binding)}"
        )

    def until_running(self, binding: str) -> None:
        """Wait until all clusters of a binding report its workload as healthy."""
        self.until_true(
            lambda: self._runs(binding), lambda: f"{binding} is at {self.placed(binding)}, not running"
        )

    def until_left(self, binding: str) -> None:
        """Wait until no eviction of a binding is left: only then may it return to a cluster."""
        self.until_true(
            lambda: not at(self.document("rb", binding), "spec", "gracefulEvictionTasks"),
            lambda: f"{binding} is at {self.placed(binding)}, and is still being evicted",
        )

    def _runs(self, binding: str) -> bool:
        document = self.document("rb", binding)
        placed = {
            cluster["name"] for cluster in cast("list[Json]", object_at(document, "spec").get("clusters", []))
        }
        statuses = cast("list[Json]", object_at(document, "status").get("aggregatedStatus", []))
        return bool(placed) and placed <= {
            status["clusterName"] for status in statuses if status.get("health") == "Healthy"
        }

    def until_true(self, holds: Callable[[], bool], message: Callable[[], str] = lambda: "") -> None:
        """Poll until the condition ``holds`` is true; after a timeout, fail with the result of ``message``."""
        waiting.until(holds, message)

    def placed(self, binding: str) -> str:
        """Return the placement of a binding; empty if it has none."""
        document = self.document("rb", binding)
        clusters = cast("list[Json]", object_at(document, "spec").get("clusters", []))
        return ", ".join(f"{cluster['name']}:{cluster.get('replicas', 0)}" for cluster in clusters)

    def document(self, *words: str) -> Json:
        """Return an object as ``get -o yaml`` prints it; empty if it does not exist."""
        return cast("Json", yaml.safe_load(self("get", *words, "-o", "yaml", code=None)) or {})

    def pods(self) -> set[str]:
        """Return the names of the pods in the namespace ``default``."""
        return {line.split()[0] for line in self("get", "pods").splitlines()[1:]}

    def clean_up(self) -> None:
        """Delete all applied objects and taints, and wait until nothing runs and no cluster is leaving.

        Members report freed capacity a moment after the end of their pods.
        """
        for cluster in sorted(self._tainted):
            keys = [line["key"] for line in self.taints(cluster)]
            if keys:
                self("untaint", cluster, *keys)
        if self._applied:
            self("delete", "-f", "-", stdin="\n---\n".join(self._applied), code=None)
        self.until([], "get", "pods", "-A")
        self.until_true(self._is_idle, lambda: self("get", "clusters", "-o", "yaml"))

    def taken(self) -> dict[str, Json]:
        """Return the capacity that each cluster reports as allocated or being allocated."""
        clusters = cast("list[Json]", self.document("clusters")["items"])
        summaries = {
            str(at(cluster, "metadata", "name")): object_at(cluster, "status", "resourceSummary")
            for cluster in clusters
        }
        return {
            name: {part: summary.get(part) for part in _TAKEN}
            for name, summary in summaries.items()
            if name.startswith("member")
        }

    def _is_idle(self) -> bool:
        """Whether no cluster is leaving, and all members report the same used capacity: that of their own pods."""
        clusters = cast("list[Json]", self.document("clusters")["items"])
        is_leaving = any(at(cluster, "metadata", "deletionTimestamp") for cluster in clusters)
        first, *others = self.taken().values()
        return not is_leaving and all(summary == first for summary in others)

    def taints(self, cluster: str) -> list[dict[str, str]]:
        """Return the taints of a cluster."""
        return cast(
            "list[dict[str, str]]", object_at(self.document("cluster", cluster), "spec").get("taints", [])
        )


def text(name: str) -> str:
    """Return a manifest of the documents."""
    return (MANIFESTS / f"{name}.yaml").read_text()


def filled(name: str, selectors: str = NGINX) -> str:
    """Return a policy of the documents, with the selectors that they left out."""
    return text(name).replace(_ELIDED, selectors, 1)


def part(document: Json, name: str) -> Json:
    """Return a field that is an object; empty if it is absent."""
    return cast("Json", document.get(name, {}))


def plain(printed: str) -> list[str]:
    """Return the lines of a table without ages and without the random suffixes of pods."""
    lines = without_ages(printed)
    if not lines or not lines[0].startswith("NAME CLUSTER READY STATUS"):
        return lines
    return [_POD.sub(r"\1 ", line) for line in lines]
