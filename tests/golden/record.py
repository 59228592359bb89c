"""Record golden logs: play the histories on a release as its users run it, and keep its log.

``python -m tests.golden.record CHECKOUT`` takes the release of that checkout (its ``events/release.py``) and
writes ``logs/RELEASE/HISTORY.sqlite.gz`` with the bindings that its own CLI showed at the end. Existing logs
are never rewritten. A history takes up to two minutes, since it runs in real time.
"""

import argparse
import gzip
import os
import shlex
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import Final

import msgspec
import yaml

from tests.golden import logs

_READY_S: Final = 60.0
_PAUSE_S: Final = 1.0
_COMMAND: Final = (sys.executable, "-P", "-m", "engine.cli")


class Recorder:
    """A server of the release in ``checkout``, with its data in ``data``."""

    def __init__(self, checkout: Path, data: Path) -> None:
        self._checkout = checkout
        self._data = data
        self._environment = {**os.environ, "PYTHONPATH": str(checkout)}

    def play(self, steps: list[str | dict[str, str | float]]) -> list[logs.Placement]:
        """Play the steps from an empty log to a clean stop; return the bindings shown at the end."""
        command = (*_COMMAND, "up", "--data", str(self._data))
        with subprocess.Popen(command, cwd=self._data.parent, env=self._environment) as server:
            try:
                self._wait_until_ready()
                for step in steps:
                    self._carry_out(step)
                return [placement for kind in ("rb", "crb") for placement in self._placements(kind)]
            finally:
                server.terminate()

    def _wait_until_ready(self) -> None:
        deadline_s = time.monotonic() + _READY_S
        while "member3" not in self._run("get", "clusters").stdout and time.monotonic() < deadline_s:
            time.sleep(_PAUSE_S)

    def _carry_out(self, step: str | dict[str, str | float]) -> None:
        match step:
            case {"wait": float() | int() as seconds}:
                time.sleep(seconds)
            case {"apply": str() as manifests}:
                self._run("apply", "-f", "-", text=manifests)
            case str():
                self._run(*shlex.split(step))
            case _:
                message = f"unknown step {step!r}"
                raise ValueError(message)
        time.sleep(_PAUSE_S)

    def _run(self, *arguments: str, text: str | None = None) -> subprocess.CompletedProcess[str]:
        """Run a command; a release that does not know it refuses it, as part of its history."""
        done = subprocess.run(
            (*_COMMAND, *arguments, "--data", str(self._data)),
            cwd=self._data.parent,
            env=self._environment,
            input=text,
            capture_output=True,
            text=True,
            check=False,
        )
        sys.stderr.write(f"{' '.join(arguments)}: {done.returncode} {done.stderr[:300]}\n")
        return done

    def _placements(self, kind: str) -> list[logs.Placement]:
        listed = msgspec.json.decode(self._run("get", kind, "-A", "--json").stdout, type=logs.BindingList)
        return [logs.placement_of(binding) for binding in listed.items]


def record(checkout: Path, history: Path) -> None:
    """Record a history, unless its log exists."""
    release = _release_of(checkout)
    target = logs.DIRECTORY / release / f"{history.stem}.sqlite.gz"
    if target.exists():
        return
    with tempfile.TemporaryDirectory() as scratch:
        data = Path(scratch) / "data"
        placements = Recorder(checkout, data).play(yaml.safe_load(history.read_text()))
        whole = Path(scratch) / "log.sqlite"
        with closing(sqlite3.connect(data / "log.sqlite")) as connection:
            connection.execute("VACUUM INTO ?", (str(whole),))
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(gzip.compress(whole.read_bytes(), mtime=0))
    shown = msgspec.json.format(msgspec.json.encode(sorted(placements)), indent=1)
    target.with_name(f"{history.stem}.bindings.json").write_bytes(shown + b"\n")


def _release_of(checkout: Path) -> str:
    code = "from events.release import RELEASE; print(RELEASE)"
    done = subprocess.run(
        (sys.executable, "-P", "-c", code),
        env={**os.environ, "PYTHONPATH": str(checkout)},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.golden.record", description=__doc__)
    parser.add_argument("checkout", type=Path, help="a checkout of the release")
    parser.add_argument("history", nargs="*", help="names of histories; all without one")
    arguments = parser.parse_args()
    for history in logs.histories():
        if not arguments.history or history.stem in arguments.history:
            record(arguments.checkout.resolve(), history)


if __name__ == "__main__":
    main()
