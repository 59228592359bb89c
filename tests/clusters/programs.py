"""The programs of a cluster and of Karmada, built from source by Go, once per version.

Go downloads the modules from its proxy; ``programs/go.sum`` and Karmada's own pin them. The first build takes minutes.
"""

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Callable
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
AGGREGATED: Final = "aggregated-apiserver"
WEBHOOK: Final = "webhook"
KARMADA_CONTROLLERS: Final = "controller-manager"
KARMADA_SCHEDULER: Final = "scheduler"
KARMADACTL: Final = "karmadactl"
SUITE: Final = "suite.test"
"""Karmada's own end-to-end tests."""

GINKGO: Final = "ginkgo"
"""Runs such tests in several processes."""

PATIENCE_S: Final = 90
"""How long one of them waits for what it expects; as Karmada builds them, 7 minutes."""

KARMADA_VERSION: Final = "v1.18.1"
KARMADA_VARIABLE: Final = "REBALLAST_TEST_KARMADA"
"""Names a directory where the programs of Karmada are already."""

_KARMADA: Final = "github.com/karmada-io/karmada"
_KWOK_MODULE: Final = "sigs.k8s.io/kwok/cmd/kwok@v0.7.0"
_VERSION: Final = "k8s.io/component-base/version"
_RELEASE: Final = ("1", "34", "v1.34.3")


class BuildError(Exception):
    """The programs cannot be built; the message has the reason."""


def directory() -> Path:
    """Return the directory of the programs; builds them if necessary. Raises BuildError."""
    return _built(VARIABLE, f"kubernetes-{_digest()}", _build)


def karmada() -> Path:
    """Return the directory of Karmada's programs; builds them if necessary. Raises BuildError.

    Its folder ``module`` is Karmada's source, which holds its CRDs and the configuration of its webhooks.
    """
    return _built(KARMADA_VARIABLE, f"karmada-{KARMADA_VERSION}-{PATIENCE_S}", _build_karmada)


def _built(variable: str, name: str, build: Callable[[Path], None]) -> Path:
    named = os.environ.get(variable)
    if named:
        return Path(named)
    program = caches.directory() / name
    with caches.exclusive(name.partition("-")[0]):
        if not program.exists():
            build(program)
    return program


def _build_karmada(into: Path) -> None:
    part = into.with_suffix(".part")
    module = f"{_KARMADA}@{KARMADA_VERSION}"
    described = _go(["mod", "download", "-json", module], part, part)
    shutil.copytree(
        json.loads(described)["Dir"], part / "module", dirs_exist_ok=True, copy_function=_writable
    )
    linking = f"-s -w -X {_KARMADA}/pkg/version.gitVersion={KARMADA_VERSION}"
    names = (AGGREGATED, WEBHOOK, KARMADA_CONTROLLERS, KARMADA_SCHEDULER, KARMADACTL)
    sources = [f"./cmd/{name}" for name in names]
    _go(["build", "-ldflags", linking, "-o", f"{part}/", *sources], part / "module", part)
    waits = part / "module/test/e2e/framework/constant.go"
    text = waits.read_text().replace("= 5 * time.Second", "= 1 * time.Second")
    waits.write_text(text.replace("= 420 * time.Second", f"= {PATIENCE_S} * time.Second"))
    _go(["build", "-o", f"{part}/", "github.com/onsi/ginkgo/v2/ginkgo"], part / "module", part)
    _go(["test", "-c", "-o", str(part / SUITE), "./test/e2e/suites/base"], part / "module", part)
    part.rename(into)


def _build(into: Path) -> None:
    part = into.with_suffix(".part")
    major, minor, whole = _RELEASE
    stamped = {"gitVersion": whole, "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    linking = "-s -w " + " ".join(f"-X {_VERSION}.{name}={value}" for name, value in stamped.items())
    _go(["build", "-trimpath", "-ldflags", linking, "-o", f"{part}/", "./..."], _SOURCES, part)
    _go(["install", "-trimpath", "-ldflags", "-s -w", _KWOK_MODULE], part, part)
    part.rename(into)


def _go(words: list[str], where: Path, into: Path) -> str:
    program = shutil.which("go")
    if program is None:
        raise BuildError(f"there is no go on the PATH, and {VARIABLE} names no directory with the programs")
    into.mkdir(exist_ok=True)
    environment = {**os.environ, "GOBIN": str(into), "GOFLAGS": "-buildvcs=false", "CGO_ENABLED": "0"}
    ended = subprocess.run(
        [program, *words], cwd=where, env=environment, capture_output=True, text=True, check=False
    )
    if ended.returncode:
        raise BuildError(f"go {words[0]}: {ended.stderr[-2_000:]}")
    return ended.stdout


def _writable(source: str, target: str) -> str:
    """Copy a file of the module cache, which is read-only there."""
    shutil.copyfile(source, target)
    return target


def _digest() -> str:
    """Return a digest of everything that determines the build."""
    digest = hashlib.sha256(f"{_KWOK_MODULE} {_RELEASE}".encode())
    for path in sorted(_SOURCES.rglob("*")):
        if path.is_file():
            digest.update(path.read_bytes())
    return digest.hexdigest()[:12]
