"""SQL schema of all projections, and its format name; a store with another format is rebuilt from the log."""

import hashlib
from typing import Final

from projections import (
    bindings,
    changes,
    client_events,
    clusters,
    counts,
    former_versions,
    keys,
    objects,
    observed_bindings,
    owner_references,
    placements,
    rebalancers,
    rejections,
    steps,
    timeline,
    works,
)

_SHARED_TABLES: Final = """
CREATE TABLE format (name TEXT NOT NULL);
CREATE TABLE checkpoint (number INTEGER NOT NULL, checksum BLOB NOT NULL);
"""
_VIEWS: Final = (
    keys,
    objects,
    owner_references,
    bindings,
    placements,
    rebalancers,
    clusters,
    works,
    former_versions,
    timeline,
    changes,
    counts,
    rejections,
    steps,
    client_events,
    observed_bindings,
)
_ROWS_FORMAT: Final = 21
"""Increase this when the encoding of a document in a row changes; older tables are then rebuilt from the log."""

STATEMENTS: Final = _SHARED_TABLES + "".join(view.SCHEMA for view in _VIEWS)
FORMAT: Final = f"{_ROWS_FORMAT}-{hashlib.blake2b(STATEMENTS.encode(), digest_size=8).hexdigest()}"
