"""Runs the kubectl of the PATH with the kubeconfig of a running server and its own home directory.

With two replicas, writes go through one and reads through the other.
"""

import contextlib
import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import Final, cast

import pytest

from events.json_values import Json
from tests.cli.servers import CommandError, holds, without_ages

SECONDS: Final = 90
_UNTIL_SECONDS: Final = 90.0
"""Longer than a minute, after which CronJobs start."""

_POLL_SECONDS: Final = 0.2
_POLL_SECONDS_MAX: Final = 1.0
_LONGER: Final = 1.25
"""A kubectl costs a tenth of a second of processor time, so a long wait polls less often."""
_ABSENT: Final = (
    "no kubectl on the PATH: https://kubernetes.io/docs/tasks/tools has it; 1.32 or later is needed"
)

_ASKING: Final = frozenset(
    {"api-resources", "auth", "describe", "events", "explain", "get", "logs", "top", "version", "wait"}
)


class Kubectl:
    """Runs kubectl in a namespace of the control plane or of a member.

    ``reading`` is the kubeconfig for read-only commands and for members; ``program`` replaces the kubectl of
    the PATH.
    """

    def __init__(  # every parameter has a name, and all but two have a default
        self,
        kubeconfig: Path,
        home_directory: Path,
        namespace: str = "default",
        context: str = "",
        *,
        reading: Path | None = None,
        program: str = "",
    ) -> None:
        self._kubeconfig = kubeconfig
        self._reading = reading or kubeconfig
        self._home = home_directory
        self._context = context
        self._program = program
        self.namespace = namespace
        self.errors = ""

    def on(self, context: str) -> "Kubectl":
        """Return the same kubectl for another context of the reading kubeconfig."""
        return Kubectl(
            self._reading, self._home, self.namespace, context, reading=self._reading, program=self._program
        )

    def __call__(self, *words: str, stdin: str = "", code: int | None = 0) -> str:
        """Run a command and return its output; fail if the exit code is not ``code`` (None accepts any)."""
        done = subprocess.run(
            self._command(*words),
            env=self._environment(words),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        self.errors = done.stderr
        if code not in {None, done.returncode}:
            raise CommandError(f"{words}: {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def json(self, *words: str) -> Json:
        """Return the object that ``get`` returns."""
        return cast("Json", json.loads(self("get", *words, "-o", "json")))

    def table(self, *words: str) -> list[str]:
        """Return the table of ``get`` as lines, with single blanks between columns and without the column AGE."""
        return without_ages(self("get", *words))

    def until(self, expected: Sequence[str], *words: str) -> None:
        """Repeat ``get`` until it prints this table (without ages)."""
        self.until_true(lambda: self.table(*words) == list(expected), lambda: self("get", *words))

    def until_true(self, is_met: Callable[[], bool], message: Callable[[], str]) -> None:
        """Poll until the condition ``is_met`` is true; after a timeout, fail with the result of ``message``.

        A command that fails meanwhile, for example since an object does not exist yet, is repeated.
        """
        deadline, pause_s = time.monotonic() + _UNTIL_SECONDS, _POLL_SECONDS
        while not holds(is_met):
            assert time.monotonic() < deadline, message()
            time.sleep(pause_s)
            pause_s = min(pause_s * _LONGER, _POLL_SECONDS_MAX)

    @contextlib.contextmanager
    def watching(self, directory: Path, *words: str) -> Generator[Path]:
        """Run ``get ... --watch`` during the block; yield the file with its output."""
        path = directory / "watched"
        with path.open("w") as printed:
            command = self._command("get", *words, "--watch")
            with subprocess.Popen(command, env=self._environment(["get"]), stdout=printed) as process:
                try:
                    yield path
                finally:
                    process.terminate()

    def _command(self, *words: str) -> list[str]:
        context = ["--context", self._context] if self._context else []
        return [self._program or found_program(), *context, "--namespace", self.namespace, *words]

    def _environment(self, words: Sequence[str]) -> dict[str, str]:
        is_asking = words[0] in _ASKING or list(words[:2]) == ["rollout", "status"]
        return {
            **{name: os.environ[name] for name in ("PATH",) if name in os.environ},
            "HOME": str(self._home),
            # It ends before a collection of garbage would pay.
            "GOGC": "off",
            "KUBECONFIG": str(self._reading if is_asking else self._kubeconfig),
            **{name: text for name, text in os.environ.items() if name == "KUBE_EDITOR"},
        }


def found_program() -> str:
    """Return the kubectl of the PATH; without one the test is skipped, in CI it fails."""
    program = shutil.which("kubectl")
    if program is None:
        if os.environ.get("CI"):
            pytest.fail(_ABSENT)
        pytest.skip(_ABSENT)
    return program
