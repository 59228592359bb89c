"""Class archives: with one, Java starts a broker in half the time.

Java 25 writes them as AOT caches; older releases as class-data archives based on the runtime's own.
"""

import hashlib
from pathlib import Path
from typing import Final

from tests.brokers import caches, jars, java

_AOT_MAJOR_MIN: Final = 25


def file() -> Path:
    """Return the path of the archive for this Java and these jars; the file may not exist."""
    program = java.java().resolve()
    description = f"{program}\0{program.stat().st_mtime_ns}\0{jars.class_path(jars.KAFKA)}"
    return caches.directory() / f"classes-{hashlib.sha256(description.encode()).hexdigest()[:12]}"


def reading() -> list[str]:
    """Return the Java options that use the archive; empty if it does not exist."""
    if not file().exists():
        return []
    name = "AOTCache" if _is_aot() else "SharedArchiveFile"
    # Java ignores an archive that does not match; the option keeps its warning off standard output.
    return [f"-XX:{name}={file()}", "-Xlog:disable", "-Xlog:all=error:stderr"]


def writing(to: Path) -> list[str]:
    """Return the Java options that write an archive when the program exits normally."""
    return [f"-XX:{'AOTCacheOutput' if _is_aot() else 'ArchiveClassesAtExit'}={to}"]


def _is_aot() -> bool:
    return java.major(java.java()) >= _AOT_MAJOR_MIN
