"""Jars by name, version and SHA-256, downloaded once from Maven Central by Maven, or by jgo without Maven.

Each lock file lists a whole class path. jgo resolves one artifact at a time on purpose: if it resolves the
class path itself, it takes dependency management from the logger's parent and gets another version of Kafka's
client.
"""

import hashlib
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Final

from jgo.maven import MavenContext
from msgspec import Struct

from tests.brokers import caches

KAFKA: Final = Path(__file__).with_name("kafka.lock")
COMPILER: Final = Path(__file__).with_name("compiler.lock")

_ANSWER_S_MAX: Final = 120
_PLUGIN: Final = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
_DEPENDENCY: Final = (
    "<dependency><groupId>{0.group}</groupId><artifactId>{0.artifact}</artifactId><version>{0.version}</version>"
    "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions></dependency>"
)
_PROJECT: Final = (
    '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
    "<groupId>tests</groupId><artifactId>jars</artifactId><version>1</version><packaging>pom</packaging>"
    "<dependencies>{}</dependencies></project>"
)


class Jar(Struct, frozen=True):
    """A line of a lock file."""

    group: str
    artifact: str
    version: str
    sha256: str

    @property
    def file(self) -> str:
        """File name of the jar, as Maven writes it."""
        return f"{self.artifact}-{self.version}.jar"


class JarsMissingError(Exception):
    """The jars cannot be downloaded, or differ from those in the lock file."""


def locked(lock: Path) -> list[Jar]:
    """Return the jars of a lock file."""
    jars: list[Jar] = []
    for line in lock.read_text().splitlines():
        if not line.startswith("#"):
            coordinate, sha256 = line.split()
            group, artifact, version = coordinate.split(":")
            jars.append(Jar(group, artifact, version, sha256))
    return jars


@cache
def class_path(lock: Path) -> str:
    """Return the class path of a lock file; downloads and verifies it at first use. Raises JarsMissingError."""
    digest = hashlib.sha256(lock.read_bytes()).hexdigest()[:12]
    directory = caches.directory() / f"{lock.stem}-{digest}"
    with caches.exclusive("jars"):
        if not directory.exists():
            _fill(directory, locked(lock))
    return ":".join(sorted(str(path) for path in directory.glob("*.jar")))


def _fill(directory: Path, jars: list[Jar]) -> None:
    """Create the directory with all jars, or not at all."""
    with tempfile.TemporaryDirectory(dir=directory.parent) as scratch:
        into = Path(scratch, "jars")
        into.mkdir()
        if shutil.which("mvn") is None or not _fetched_by_maven(into, jars):
            _fetch_by_jgo(into, jars)
        for jar in jars:
            if hashlib.sha256((into / jar.file).read_bytes()).hexdigest() != jar.sha256:
                raise JarsMissingError(f"{jar.file}: its SHA-256 is not the one in the lock")
        into.rename(directory)


def _fetched_by_maven(into: Path, jars: list[Jar]) -> bool:
    with tempfile.TemporaryDirectory() as scratch:
        pom = Path(scratch, "pom.xml")
        pom.write_text(_PROJECT.format("".join(_DEPENDENCY.format(jar) for jar in jars)))
        command = [
            "mvn",
            "-q",
            "-B",
            "-f",
            str(pom),
            _PLUGIN,
            "-DincludeScope=runtime",
            f"-DoutputDirectory={into}",
        ]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0


def _fetch_by_jgo(into: Path, jars: list[Jar]) -> None:
    maven = MavenContext(timeout=_ANSWER_S_MAX)
    for jar in jars:
        try:
            resolved = maven.project(jar.group, jar.artifact).at_version(jar.version).artifact().resolve()
        except Exception as error:
            raise JarsMissingError(f"{jar.file}: not to be had from Maven Central: {error}") from error
        shutil.copy(resolved, into / jar.file)
