"""Compile Java with javac if there is a JDK, otherwise with Eclipse's compiler, which needs only a runtime."""

import subprocess
from pathlib import Path
from typing import Final

from tests.brokers import jars, java

RELEASE: Final = "17"
"""Java version of the sources."""


class CompilerError(Exception):
    """A source that does not compile; the message is the compiler's output."""


def compile_java(source: Path, into: Path, *, with_jdk: bool = True) -> None:
    """Compile a source against Kafka's jars; warnings are errors. Raises CompilerError.

    ``with_jdk=False`` always uses Eclipse's compiler.
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
