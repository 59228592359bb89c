"""Limits on what is taken in; each refusal names the one that was passed."""

from typing import Final

OBJECT_BYTES_MAX: Final = 1024 * 1024
"""Largest object, as Kubernetes' own store allows it."""

RECORD_BYTES_MAX: Final = 2 * 1024 * 1024
"""Largest record value; topics are set up for it."""

KEY_BYTES_MAX: Final = 1024
HEADER_BYTES_MAX: Final = 16 * 1024
"""All headers of a record together, as JSON; in structured mode also all attributes of the envelope."""

DEPTH_MAX: Final = 64
"""Deepest nesting of a JSON or YAML document."""

RECORD_DEPTH_MAX: Final = DEPTH_MAX + 2
"""Deepest nesting of a record's value: an object, in an event's data, in a structured envelope."""

CLUSTERS_MAX: Final = 65_536
"""Member clusters; what is computed over them has room for so many."""

RECENT_IDS: Final = 65_536
"""Offsets of a partition within which a repeated (source, id) is known as a repetition.

Offsets, not records: on Kafka each transaction takes an offset more than it has records, so fewer records fit. Former
releases counted so too, and verdicts must stay what they were.
"""

SECONDS_MAX: Final = 2**31 - 1
"""Kubernetes writes spans of time in 32 bits; what ends so much later still has an instant."""

REPLICAS_MAX: Final = 2**31 - 1
"""Kubernetes counts replicas in 32 bits."""

STATUS_RULES_MAX: Final = 16
"""Rules of one list that say which values of a status are kept, or reported."""

STATUS_VALUES_MAX: Final = 64
"""Values of one status in a report; more than all lists of rules can ask for together."""

STATUS_VALUE_CHARS_MAX: Final = 256
"""Longest of these values; a longer one is cut by who reports it. A label has room for 63."""

RULES_MAX: Final = 1_000
"""Entries of one list of rules in a new object that the engine decides by: selectors, affinities, taints, weights."""

NAMES_MAX: Final = 10_000
"""Texts of one list in such an object: names of clusters, values of a condition."""

DEPENDENCIES_MAX: Final = 1_000
"""Objects to which a workload refers and that go where it goes: the record of them has less than 1 MiB."""

WORKLOADS_MAX: Final = 10_000
"""Workloads of a new rebalancer."""

SPEC_VALUES_MAX: Final = 50_000
"""Fields and entries of the spec of such an object together, at all levels."""
