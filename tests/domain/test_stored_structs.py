"""Snapshots and rows of the views written before a change of their structs must not be read after it."""

import msgspec

from engine.deciders.facts import FactsState
from engine.reconcilers import snapshots
from projections import bindings, client_events, clusters, rebalancers, schema, steps, works
from tests import struct_shapes


def test_format_of_snapshots_changes_with_their_structs() -> None:
    written = (snapshots.FORMAT, struct_shapes.digest(snapshots.ShardSnapshot, FactsState))
    assert written == (23, "d9d5b90e71de9d28"), (
        "raise FORMAT in engine/reconcilers/snapshots.py, adapt this line"
    )


def test_format_of_views_changes_with_the_structs_in_their_rows() -> None:
    number = int(schema.FORMAT.partition("-")[0])
    bodies = (
        bindings.Binding,
        client_events.ClientEvent,
        clusters.Cluster,
        rebalancers.Rebalancer,
        steps.ShardSteps,
        works.Work,
    )
    written = (number, struct_shapes.digest(*bodies))
    assert written == (21, "731e57e90a11398e"), "raise _ROWS_FORMAT in projections/schema.py, adapt this line"


def test_digest_changes_with_a_nested_field_but_not_with_names_of_classes() -> None:
    def digest(name: str, field: type) -> str:
        inner = msgspec.defstruct(name, [("field", field)])
        return struct_shapes.digest(msgspec.defstruct("Outer", [("items", dict[str, inner])]))

    assert digest("Inner", int) == digest("Renamed", int) != digest("Inner", str)
