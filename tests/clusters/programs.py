"""The programs of a cluster, built from source by Go, once per lock file.

Go downloads the modules from its proxy; ``programs/go.sum`` pins them. The first build takes minutes.
"""

import hashlib
import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

from tests.brokers import caches

VARIABLE: Final = "REBALLAST_TEST_KUBERNETES"
"""Names a directory where the programs are already."""

ETCD: Final = "etcd"
API_SERVER: Final = "kube-apiserver"
CONTROLLERS: Final = "kube-controller-manager"
SCHEDULER: Final = "kube-scheduler"
KWOK: Final = "kwok"
_SOURCES: Final = Path(__file__).parent / "programs"
_KWOK_MODULE: Final = "sigs.k8s.io/kwok/cmd/kwok@v0.7.0"
_VERSION: Final = "k8s.io/component-base/version"
_RELEASE: Final = ("1", "34", "v1.34.3")


class BuildError(Exception):
    """The programs cannot be built; the message has the reason."""


def directory() -> Path:
    """Return the directory of the programs; builds them if necessary. Raises BuildError."""
    named = os.environ.get(VARIABLE)
    if named:
        return Path(named)
    found = caches.directory() / f"kubernetes-{_digest()}"
    with caches.exclusive("kubernetes"):
        if not found.exists():
            _build(found)
    return found


def _build(into: Path) -> None:
    part = into.with_suffix(".part")
    major, minor, whole = _RELEASE
    stamped = {"gitVersion": whole, "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    linking = "-s -w " + " ".join(f"-X {_VERSION}.{name}={value}" for name, value in stamped.items())
    _go(["build", "-trimpath", "-ldflags", linking, "-o", f"{part}/", "./..."], _SOURCES, part)
    _go(["install", "-trimpath", "-ldflags", "-s -w", _KWOK_MODULE], part, part)
    part.rename(into)


def _go(words: list[str], where: Path, into: Path) -> None:
    program = shutil.which("go")
    if program is None:
        raise BuildError(f"there is no go on the PATH, and {VARIABLE} names no directory with the programs")
    into.mkdir(exist_ok=True)
    environment = {**os.environ, "GOBIN": str(into), "GOFLAGS": "-buildvcs=false", "CGO_ENABLED": "0"}
    ended = subprocess.run(
        [program, *words], cwd=where, env=environment, stderr=subprocess.PIPE, text=True, check=False
    )
    if ended.returncode:
        raise BuildError(f"go {words[0]}: {ended.stderr[-2_000:]}")


def _digest() -> str:
    """Return a digest of everything that determines the build."""
    found = hashlib.sha256(f"{_KWOK_MODULE} {_RELEASE}".encode())
    for each in sorted(_SOURCES.rglob("*")):
        if each.is_file():
            found.update(each.read_bytes())
    return found.hexdigest()[:12]
