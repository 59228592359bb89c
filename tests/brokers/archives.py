"""Archives of the broker's loaded classes: with one, Java starts a broker in half the time.

Java 25 writes and reads them as AOT caches, which need nothing else; older releases as class-data archives on top of
the runtime's own.
"""

import hashlib
from pathlib import Path
from typing import Final

from tests.brokers import caches, jars, java

_AOT_MAJOR_MIN: Final = 25


def file() -> Path:
    """Where the archive for this Java and these jars stands, or would stand."""
    program = java.java().resolve()
    told = f"{program}\0{program.stat().st_mtime_ns}\0{jars.class_path(jars.KAFKA)}"
    return caches.directory() / f"classes-{hashlib.sha256(told.encode()).hexdigest()[:12]}"


def reading() -> list[str]:
    """Java's options that make use of the archive; none where there is no archive."""
    if not file().exists():
        return []
    name = "AOTCache" if _is_aot() else "SharedArchiveFile"
    # An archive that doesn't fit is passed over, without a word on standard output.
    return [f"-XX:{name}={file()}", "-Xlog:disable", "-Xlog:all=error:stderr"]


def writing(to: Path) -> list[str]:
    """Java's options that write an archive when the program ends in order."""
    return [f"-XX:{'AOTCacheOutput' if _is_aot() else 'ArchiveClassesAtExit'}={to}"]


def _is_aot() -> bool:
    return java.major(java.java()) >= _AOT_MAJOR_MIN
