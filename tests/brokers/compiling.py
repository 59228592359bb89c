"""Compiles Java: by javac where there is a JDK, else by Eclipse's compiler, which needs only a runtime."""

import subprocess
from pathlib import Path
from typing import Final

from tests.brokers import jars, java

RELEASE: Final = "17"
"""The Java that the sources are written for."""


class CompilerError(Exception):
    """The source does not compile; the message is the compiler's."""


def compile_java(source: Path, into: Path, *, with_jdk: bool = True) -> None:
    """Compiles a source against Kafka's jars; warnings are errors. Raises CompilerError.

    ``with_jdk=False`` takes Eclipse's compiler in any case.
    """
    javac = java.javac() if with_jdk else None
    options = ["-cp", jars.class_path(jars.KAFKA), "-d", str(into), str(source)]
    if javac is not None:
        command = [str(javac), "--release", RELEASE, "-Xlint:all,-processing", "-Werror", *options]
    else:
        compiler = ["-jar", jars.class_path(jars.COMPILER)]
        command = [
            str(java.java()),
            *compiler,
            "-source",
            RELEASE,
            "-target",
            RELEASE,
            "-failOnWarning",
            *options,
        ]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise CompilerError(ended.stdout + ended.stderr)
