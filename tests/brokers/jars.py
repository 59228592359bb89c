"""Jars by name, version and SHA-256, fetched once from Maven Central by Maven, or by jgo where there is no Maven.

Each lock lists a whole class path. jgo is asked for one artifact at a time on purpose: left to resolve the class
path by itself it takes the logger's parent for dependency management, and another version of Kafka's client.
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
    """One line of a lock."""

    group: str
    artifact: str
    version: str
    sha256: str

    @property
    def file(self) -> str:
        """The name of its file, as Maven writes it."""
        return f"{self.artifact}-{self.version}.jar"


class JarsMissingError(Exception):
    """The jars could not be had, or are not those that the lock names."""


def locked(lock: Path) -> list[Jar]:
    """The jars of a lock."""
    jars: list[Jar] = []
    for line in lock.read_text().splitlines():
        if not line.startswith("#"):
            coordinate, sha256 = line.split()
            group, artifact, version = coordinate.split(":")
            jars.append(Jar(group, artifact, version, sha256))
    return jars


@cache
def class_path(lock: Path) -> str:
    """The class path of a lock, fetched and verified at first use. Raises JarsMissingError."""
    digest = hashlib.sha256(lock.read_bytes()).hexdigest()[:12]
    directory = caches.directory() / f"{lock.stem}-{digest}"
    with caches.exclusive("jars"):
        if not directory.exists():
            _fill(directory, locked(lock))
    return ":".join(sorted(str(path) for path in directory.glob("*.jar")))


def _fill(directory: Path, jars: list[Jar]) -> None:
    """Makes the directory with all jars or not at all."""
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
            found = maven.project(jar.group, jar.artifact).at_version(jar.version).artifact().resolve()
        except Exception as error:
            raise JarsMissingError(f"{jar.file}: not to be had from Maven Central: {error}") from error
        shutil.copy(found, into / jar.file)
