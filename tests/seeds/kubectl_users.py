"""Runs the commands of the guides with kubectl; karmadactl commands are translated into kubectl commands.

``karmadactl get`` lists the objects of all members with two more columns: the cluster, and whether the object
is managed by Karmada.
"""

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import pytest

from tests.kubectl.commands import Kubectl
from tests.kubectl.members import MEMBERS
from tests.seeds.users import User

_WORKLOADS: Final = ("deploy", "deployment")
_PODS: Final = ("pod", "pods")
_MANAGED: Final = "karmada.io/managed"
_OWN: Final = "kube-system "


class KubectlUser(User):
    """A user who runs the real kubectl instead of the ``reballast`` commands."""

    def __init__(self, directory: Path, kubectl: Kubectl, patches: pytest.MonkeyPatch) -> None:
        super().__init__(directory)
        self._kubectl = kubectl
        self._patches = patches
        self._is_cleaning_up = False

    def __call__(self, *words: str, code: int | None = 0, stdin: str = "") -> str:
        """Run a command and return its output; ``get`` of workloads and pods queries the members."""
        if self._is_cleaning_up:
            return super().__call__(*words, stdin=stdin, code=code)
        # `reballast edit` reads EDITOR; the environment that kubectl gets here has KUBE_EDITOR only.
        if "EDITOR" in os.environ:
            self._patches.setenv("KUBE_EDITOR", os.environ["EDITOR"])
        match words:
            case ("get", kind, *rest) if kind in (*_WORKLOADS, *_PODS) and "-o" not in rest:
                return self._over_members(kind, rest)
            case ("untaint", cluster, *keys):
                return "".join(self.taint(cluster, f"{key}-") for key in keys)
            case _:
                printed = self._kubectl(*words, stdin=stdin, code=code)
                self.errors = self._kubectl.errors
                return printed

    def taint(self, cluster: str, taint: str) -> str:
        """Add or remove a taint of a cluster with the patch that karmadactl sends."""
        self._tainted.add(cluster)
        key, _, effect = taint.rstrip("-").partition(":")
        key, _, value = key.partition("=")
        kept = [
            existing
            for existing in self.taints(cluster)
            if existing["key"] != key or effect not in ("", existing["effect"])
        ]
        is_gone = taint.endswith("-")
        if not is_gone:
            kept.append({"effect": effect, "key": key} | ({"value": value} if value else {}))
        patch = json.dumps({"spec": {"taints": kept or None}})
        self("patch", "cluster", cluster, "--type=merge", "-p", patch)
        return f"cluster/{cluster} {'untainted' if is_gone else 'tainted'}\n"

    def until_true(self, holds: Callable[[], bool], message: Callable[[], str] = lambda: "") -> None:
        """Poll until the condition ``holds`` is true; after a timeout, fail with the result of ``message``."""
        if self._is_cleaning_up:
            super().until_true(holds, message)
        else:
            self._kubectl.until_true(holds, message)

    def clean_up(self) -> None:
        """Clean up as other users: a kubectl costs more processor time than many ``reballast`` commands here."""
        self._is_cleaning_up = True
        super().clean_up()

    def _over_members(self, kind: str, words: Sequence[str]) -> str:
        is_workload = kind in _WORKLOADS
        more = ("-L", _MANAGED) if is_workload else ()
        lines: list[list[str]] = []
        for member in MEMBERS:
            # A member without the named object reports an error; the other members are listed nevertheless.
            printed = self._kubectl.on(member)("get", kind, *words, *more, code=None)
            rows = [line.split() for line in printed.splitlines() if not line.startswith(_OWN)]
            # Omit what no guide shows: objects that a member has from the start, and a heading without rows.
            for name, *cells in rows if len(rows) > 1 else ():
                if name in ("NAME", "NAMESPACE"):
                    head = [name, "CLUSTER", *cells]
                    lines = lines or [[*head[:-1], "ADOPTION"] if is_workload else head]
                else:
                    managed = cells.pop() if is_workload and cells[-1] == "true" else ""
                    lines.append([name, member, *cells, *(["Y" if managed else "N"] if is_workload else [])])
        return "\n".join(" ".join(line) for line in lines)
