"""What is done once per machine before local brokers start: fetch the jars, archive their classes.

Half a minute at most; without it each start would take as long as the first one.
"""

from tests.brokers import archives, caches, jars, processes


def prepare() -> None:
    """Makes local brokers quick to start. Raises JarsMissingError or BrokerError."""
    jars.class_path(jars.KAFKA)
    with caches.exclusive("archive"):
        if not archives.file().exists():
            _write_archive()


def _write_archive() -> None:
    part = archives.file().with_suffix(".part")
    with processes.LocalBrokers(1, java_options=archives.writing(part)) as brokers:
        brokers.stop(1)
    # A Java that can't write one is only slower.
    if part.exists():
        part.rename(archives.file())
