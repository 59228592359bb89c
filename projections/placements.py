"""Table of placements: each is stored once under its digest, because all bindings of a policy share it."""

from typing import Final

import msgspec
from msgspec import Struct

from engine.domain.bindings import placement_digest
from engine.domain.workload_groups import WorkloadAffinity
from events.json_values import DECODING_ERRORS
from projections.port import Rows

SCHEMA: Final = "CREATE TABLE placements (digest TEXT PRIMARY KEY, placement BLOB NOT NULL) WITHOUT ROWID;"
_KNOWN_MAX: Final = 16_384


class _Grouping(Struct, rename="camel"):
    """The part of a placement that groups workloads."""

    workload_affinity: WorkloadAffinity | None = None


_decode: Final = msgspec.json.Decoder(_Grouping).decode


class Placements:
    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._known: set[str] = set()
        self._new: dict[str, bytes] = {}
        self._grouping: dict[str, WorkloadAffinity | None] = {}

    def get(self, digest: str) -> bytes | None:
        """Return the JSON of the placement with this digest, even if it is not written yet; None if there is none."""
        return self._new.get(digest) or stored(self._rows, digest)

    def put(self, placement: msgspec.Raw) -> str:
        """Store the placement if it is new; return its digest."""
        digest = placement_digest(placement)
        if digest not in self._known:
            self._known.add(digest)
            self._new[digest] = bytes(placement)
        return digest

    def workload_affinity(self, digest: str) -> WorkloadAffinity | None:
        """Return the ``workloadAffinity`` of the placement with this digest; None if there is none."""
        if digest not in self._grouping:
            self._grouping[digest] = _workload_affinity(self.get(digest))
        return self._grouping[digest]

    def flush(self, rows: Rows) -> None:
        # OR IGNORE: the table may have placements that are no longer in ``_known``, which is cleared at times.
        rows.write("INSERT OR IGNORE INTO placements VALUES (?, ?)", self._new.items())
        self._new = {}
        if len(self._known) > _KNOWN_MAX:
            self._known = set()
        if len(self._grouping) > _KNOWN_MAX:
            self._grouping = {}


def _workload_affinity(placement: bytes | None) -> WorkloadAffinity | None:
    # Releases that did not read this field may have recorded anything in it; that must not stop the views.
    try:
        return None if placement is None else _decode(placement).workload_affinity
    except DECODING_ERRORS:
        return None


def stored(rows: Rows, digest: str) -> bytes | None:
    """Return the JSON of a stored placement; None for an empty or unknown digest."""
    matches = rows.select("SELECT placement FROM placements WHERE digest = ?", (digest,)) if digest else []
    return matches[0][0] if matches else None
