"""Compile and run the Java producer of ``events/examples`` against any brokers."""

import subprocess
from pathlib import Path
from typing import IO, Final, Self

from tests.brokers import compiling, jars, java
from tests.tidy import trees

SOURCE: Final = trees.ROOT / "events/examples/java/TaintCluster.java"
_END_S_MAX: Final = 60


class TaintCluster:
    """The running program: taints ``member1`` of the log with this prefix, and prints the consequences.

    It exits after ``silence_s`` without an answer.
    """

    def __init__(
        self,
        classes: Path,
        servers: str,
        prefix: str,
        *,
        event_id: str,
        effect: str = "NoExecute",
        silence_s: int = 5,
    ) -> None:
        settings = classes / "client.properties"
        settings.write_text(f"bootstrap.servers={servers}\n")
        arguments = (str(settings), prefix, "member1", "maintenance", effect, str(silence_s), event_id)
        path = f"{classes}:{jars.class_path(jars.KAFKA)}"
        self._process = subprocess.Popen(
            [str(java.java()), "-XX:TieredStopAtLevel=1", "-cp", path, "TaintCluster", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def line(self) -> str:
        """Return the next printed line; empty after the program has ended."""
        return _stream(self._process.stdout).readline().rstrip()

    def end(self) -> int:
        """Wait for the end, and return the exit code."""
        return self._process.wait(_END_S_MAX)

    def complaint(self) -> str:
        """Wait for the end, and return stderr."""
        return _stream(self._process.stderr).read()


def compiled(into: Path, *, with_jdk: bool = True) -> Path:
    """Compile the program, and return the directory of its classes."""
    compiling.compile_java(SOURCE, into, with_jdk=with_jdk)
    return into


def _stream(stream: IO[str] | None) -> IO[str]:
    assert stream is not None
    return stream
