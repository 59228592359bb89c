"""``python -m tests.clusters conformance [--all] [FOCUS ...]``: Karmada's own end-to-end tests of ``reballast up``.

They run as their authors wrote them, but poll every second and give up earlier. ``conformance.toml`` lists the
tests that cannot pass, with reasons; they are left out, except with ``--all``. The others have to pass.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from tests.cli import servers
from tests.clusters import programs

PROCESSES: Final = 4
_DONE: Final = "•"
"""Begins the line of a test that ended."""

_PASSED: Final = "passed"
_SKIPPED: Final = "skipped"
_ALL: Final = "--all"
_LINES_SHOWN: Final = 40
_SPECIAL: Final = re.compile(r"([][(){}.*+?^$|\\])")
"""Characters with a meaning in Go's regular expressions."""

_EXPECTED: Final = Path(__file__).with_suffix(".toml")
_KARMADA: Final = "karmada-apiserver"
_HOST: Final = "karmada-host"


class Spec(Struct, frozen=True):
    """Result of one test; ``place`` is its file with the line."""

    place: str
    text: str
    state: str
    message: str


def main(words: list[str]) -> int:
    """Run the tests whose texts match regular expressions, or all that can pass; return 1 if one of these fails."""
    where = programs.karmada()
    excused = _excused()
    chosen = [f"--focus={word}" for word in words if word != _ALL]
    if _ALL not in words:
        chosen += ["--skip=" + _SPECIAL.sub(r"\\\1", text) for text in excused]
    with tempfile.TemporaryDirectory(prefix="reballast-conformance-") as named:
        directory = Path(named)
        with servers.running(directory / "data"):
            report = _run(where, directory, chosen)
        specs = list(_specs(json.loads(report.read_text())))
    return _print_failures(specs, excused)


def _excused() -> dict[str, str]:
    """Return the reason why tests cannot pass, by the beginning of their text."""
    groups = tomllib.loads(_EXPECTED.read_text())["cannot"]
    return {text: group["reason"] for group in groups for text in group["tests"]}


def _run(where: Path, directory: Path, chosen: Sequence[str]) -> Path:
    """Run the tests in parallel processes; return their report."""
    config = json.loads((directory / "data/kubeconfig").read_text())
    context = next(entry["context"] for entry in config["contexts"] if entry["name"] == _KARMADA)
    # The tests look at Karmada's own pods through this context; here it is the control plane again.
    config["contexts"].append({"name": _HOST, "context": context})
    kubeconfig = directory / "kubeconfig"
    kubeconfig.write_text(json.dumps(config))
    # They take karmadactl from the folder of Go's programs.
    (directory / "go/bin").mkdir(parents=True)
    (directory / "go/bin" / programs.KARMADACTL).symlink_to(where / programs.KARMADACTL)
    environment = {**os.environ, "KUBECONFIG": str(kubeconfig), "GOPATH": str(directory / "go")}
    command = [
        *(where / programs.GINKGO, f"--procs={PROCESSES}", "--json-report=report.json", "--succinct"),
        *("--no-color", "--silence-skips", "--timeout=3h", *chosen, where / programs.SUITE),
        *("--", "--poll-interval=1s", f"--poll-timeout={programs.PATIENCE_S}s"),
    ]
    with subprocess.Popen(
        command, cwd=directory, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as running:
        assert running.stdout is not None
        last: deque[str] = deque(maxlen=_LINES_SHOWN)
        for line in running.stdout:
            last.append(line)
            if line.startswith(_DONE):
                sys.stdout.write("F" if "[FAILED]" in line else ".")
                sys.stdout.flush()
    sys.stdout.write("\n")
    report = directory / "report.json"
    # Tests are skipped too if the suite fails before the first one.
    if all(spec.state == _SKIPPED for spec in _specs(json.loads(report.read_text()))):
        raise programs.BuildError(f"no test ran; the suite printed last:\n{''.join(last)}")
    return report


def _specs(report: Sequence[Mapping[str, Any]]) -> Iterator[Spec]:
    for spec_report in report[0]["SpecReports"]:
        if spec_report["LeafNodeType"] == "It":
            at = spec_report["LeafNodeLocation"]
            yield Spec(
                f"{Path(at['FileName']).name}:{at['LineNumber']}",
                " ".join([*(spec_report["ContainerHierarchyTexts"] or []), spec_report["LeafNodeText"]]),
                spec_report["State"],
                str(spec_report["Failure"]["Message"]).partition("\n")[0]
                if spec_report.get("Failure")
                else "",
            )


def _print_failures(specs: Sequence[Spec], excused: Mapping[str, str]) -> int:
    """Print what failed, and the tests that pass and cannot pass; return the exit code."""
    reasons: Counter[str] = Counter()
    states: Counter[str] = Counter()
    failed = 0
    for spec in specs:
        reason = next((why for text, why in excused.items() if spec.text.startswith(text)), "")
        states[spec.state] += 1
        if spec.state == _PASSED:
            continue
        if reason:
            reasons[reason] += 1
        elif spec.state != _SKIPPED or spec.message:
            failed += 1
            sys.stdout.write(f"{spec.state}  {spec.place}  {spec.text}\n    {spec.message}\n")
    for reason, count in reasons.most_common():
        sys.stdout.write(f"{count:4} cannot pass: {reason}\n")
    ran = states.total() - states[_SKIPPED]
    sys.stdout.write(f"{states[_PASSED]} of {ran} passed, {states[_SKIPPED]} of {len(specs)} were left out\n")
    return 1 if failed else 0
