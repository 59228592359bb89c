"""Preparation of local brokers, once per machine: download the jars, archive their classes.

Takes up to half a minute; without it each start of a broker would be as slow as the first.
"""

from tests.brokers import archives, caches, jars, processes


def prepare() -> None:
    """Download the jars and write the class archive. Raises JarsMissingError or BrokerError."""
    jars.class_path(jars.KAFKA)
    with caches.exclusive("archive"):
        if not archives.file().exists():
            _write_archive()


def _write_archive() -> None:
    part = archives.file().with_suffix(".part")
    with processes.LocalBrokers(1, java_options=archives.writing(part)) as brokers:
        brokers.stop(1)
    # A Java that cannot write an archive is only slower.
    if part.exists():
        part.rename(archives.file())
