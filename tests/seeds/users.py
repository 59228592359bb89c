"""A user at a terminal: gives commands and reads what they print.

The commands run in the process of the tests: a process of its own for each would take longer than the commands.
"""

import contextlib
import io
import re
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, cast

import pytest
import yaml

from engine.cli import main
from tests.cli.servers import without_ages

MANIFESTS: Final = Path(__file__).parent / "manifests"
NGINX: Final = """
  resourceSelectors:
    - apiVersion: apps/v1
      kind: Deployment
      name: nginx
""".strip("\n")
_ELIDED: Final = "  #..."
_UNTIL_SECONDS: Final = 20.0
_POLL_SECONDS: Final = 0.05
_POD: Final = re.compile(r"^(\S+?)-[a-z0-9]+-[a-z0-9]+ ")

Json = dict[str, object]


class User:
    """Gives commands to the server of a directory; remembers what is to be taken away in the end."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._applied: list[str] = []
        self._tainted: set[str] = set()
        self.errors = ""

    def __call__(self, *words: str, code: int | None = 0, given: str = "") -> str:
        """What a command printed; fails where its exit code is another (None takes any)."""
        printed, errors = io.StringIO(), io.StringIO()
        with (
            pytest.MonkeyPatch.context() as patches,
            contextlib.redirect_stdout(printed),
            contextlib.redirect_stderr(errors),
        ):
            patches.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given.encode())))
            found = main.run([*words, "--data", str(self._directory)])
        self.errors = errors.getvalue()
        assert code in {None, found}, f"{words}: {found}\n{printed.getvalue()}{self.errors}"
        return printed.getvalue()

    def apply(self, manifest: str, *options: str, code: int = 0) -> str:
        """Applies the text of a manifest, or a file of the documents by its name."""
        if "\n" in manifest:
            self._applied.append(manifest)
            return self("apply", "-f", "-", *options, given=manifest, code=code)
        self._applied.append(text(manifest))
        return self("apply", "-f", str(MANIFESTS / f"{manifest}.yaml"), *options, code=code)

    def taint(self, cluster: str, taint: str) -> str:
        """Taints a cluster, as karmadactl has it."""
        self._tainted.add(cluster)
        return self("taint", "clusters", cluster, taint)

    def until(self, wanted: Sequence[str], *words: str) -> None:
        """Repeats a command until it prints this table, ages and the chance in pods' names aside.

        What is asked for by name may not be there yet.
        """
        code = None if wanted else 0
        self.until_true(
            lambda: plain(self(*words, code=code)) == list(wanted),
            lambda: f"{words}\n{self(*words, code=None)}",
        )

    def until_placed(self, binding: str, clusters: str) -> None:
        """Waits until a binding is scheduled as said: ``member1:2, member2:1``."""
        self.until_true(
            lambda: self.placed(binding) == clusters, lambda: f"{binding} is placed on {self.placed(binding)}"
        )

    def until_running(self, binding: str) -> None:
        """Waits until the clusters of a binding have reported that all of it runs, and so their room too."""
        self.until_true(
            lambda: self._runs(binding), lambda: f"{binding} is at {self.placed(binding)}, not running"
        )

    def until_left(self, binding: str) -> None:
        """Waits until nothing of a binding is being evicted any more: only then may it come back to where it was."""
        self.until_true(
            lambda: not part(self.document("rb", binding), "spec").get("gracefulEvictionTasks"),
            lambda: f"{binding} is at {self.placed(binding)}, and is still being evicted",
        )

    def _runs(self, binding: str) -> bool:
        found = self.document("rb", binding)
        placed = {each["name"] for each in cast("list[Json]", part(found, "spec").get("clusters", []))}
        told = cast("list[Json]", part(found, "status").get("aggregatedStatus", []))
        return bool(placed) and placed <= {
            each["clusterName"] for each in told if each.get("health") == "Healthy"
        }

    def until_true(self, holds: Callable[[], bool], told: Callable[[], str] = lambda: "") -> None:
        """Asks until it holds; ``told`` says what is the case when that takes too long."""
        deadline = time.monotonic() + _UNTIL_SECONDS
        while not holds():
            assert time.monotonic() < deadline, told()
            time.sleep(_POLL_SECONDS)

    def placed(self, binding: str) -> str:
        """Where a binding is scheduled; empty where it is not."""
        found = self.document("rb", binding)
        clusters = cast("list[Json]", part(found, "spec").get("clusters", []))
        return ", ".join(f"{each['name']}:{each.get('replicas', 0)}" for each in clusters)

    def document(self, *words: str) -> Json:
        """A whole object, as ``get -o yaml`` prints it; empty where there is none."""
        return cast("Json", yaml.safe_load(self("get", *words, "-o", "yaml", code=None)) or {})

    def pods(self) -> set[str]:
        """The names of the pods in the namespace ``default``."""
        return {line.split()[0] for line in self("get", "pods").splitlines()[1:]}

    def clean_up(self) -> None:
        """Takes away what was applied and tainted, and waits until nothing runs."""
        for cluster in sorted(self._tainted):
            keys = [line["key"] for line in self._taints(cluster)]
            if keys:
                self("untaint", cluster, *keys)
        if self._applied:
            self("delete", "-f", "-", given="\n---\n".join(self._applied), code=None)
        self.until([], "get", "pods", "-A")

    def _taints(self, cluster: str) -> list[dict[str, str]]:
        return cast("list[dict[str, str]]", part(self.document("cluster", cluster), "spec").get("taints", []))


def text(name: str) -> str:
    """A manifest of the documents."""
    return (MANIFESTS / f"{name}.yaml").read_text()


def filled(name: str, selectors: str = NGINX) -> str:
    """A policy of the documents with what they left out: what it selects."""
    return text(name).replace(_ELIDED, selectors, 1)


def part(document: Json, name: str) -> Json:
    """A field that is an object; empty where it is absent."""
    return cast("Json", document.get(name, {}))


def plain(printed: str) -> list[str]:
    """The lines of a table without ages, and without the chance in pods' names."""
    lines = without_ages(printed)
    if not lines or not lines[0].startswith("NAME CLUSTER READY STATUS"):
        return lines
    return [_POD.sub(r"\1 ", line) for line in lines]
