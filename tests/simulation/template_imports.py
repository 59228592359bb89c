"""The imported placements of templates, as the log has them."""

from collections.abc import Iterable

import msgspec

from events import imported_placements, topics
from events.records import StoredRecord


class Import(msgspec.Struct):
    """The clusters with which a template was imported, until they are taken over: they count as its clusters."""

    annotation: str = ""
    clusters: dict[str, int] = {}

    def declare(self, annotation: str) -> None:
        """Fold that a template is declared which has this annotation, or none."""
        if not annotation or self.clusters or self.annotation != annotation:
            self.clusters = msgspec.json.decode(annotation)["clusters"] if annotation else {}
        self.annotation = annotation


def annotations(records: Iterable[StoredRecord]) -> dict[tuple[int, int], str]:
    """Return the annotations with imported placements, by partition and offset of the template."""
    texts: dict[tuple[int, int], str] = {}
    for record in records:
        if record.topic == topics.SPECS and imported_placements.ANNOTATION.encode() in record.value:
            metadata = msgspec.json.decode(record.value)["manifest"]["metadata"]
            texts[record.partition, record.offset] = metadata["annotations"][imported_placements.ANNOTATION]
    return texts
