"""Limits on inputs; the reason of a refusal names the limit that was exceeded."""

from typing import Final

OBJECT_BYTES_MAX: Final = 1024 * 1024
"""Largest object, in bytes; about the limit of etcd."""

RECORD_BYTES_MAX: Final = 2 * 1024 * 1024
"""Largest record value, in bytes; topics are created with it."""

KEY_BYTES_MAX: Final = 1024
HEADER_BYTES_MAX: Final = 16 * 1024
"""All headers of a record as JSON, in bytes; in structured mode, all attributes of the envelope."""

DEPTH_MAX: Final = 64
"""Deepest nesting of a JSON or YAML document."""

RECORD_DEPTH_MAX: Final = DEPTH_MAX + 2
"""Deepest nesting of a record's value: an object inside event data inside a structured envelope."""

NAME_CHARS_MAX: Final = 253
"""Longest name of an object, in characters: as long as a DNS subdomain may be."""

LABEL_CHARS_MAX: Final = 63
"""Longest DNS label or label value, in characters."""

PORT_MAX: Final = 65_535

SHOWN_CHARS_MAX: Final = 80
"""Maximum number of characters of an input's value that a message quotes; longer values are cut."""

CLUSTERS_MAX: Final = 65_536
"""Maximum number of member clusters of a control plane; bounds all arrays that have an entry per cluster."""

RECENT_IDS: Final = 65_536
"""Number of offsets in a partition within which a repeated (source, id) is detected.

It counts offsets, not records: on Kafka each transaction uses one more offset than it has records, so fewer
records fit. Do not change this: verdicts on old records must stay as they were.
"""

SECONDS_MAX: Final = 2**31 - 1
"""Durations have 32 bits as in Kubernetes; adding the largest to an instant cannot overflow."""

REPLICAS_MAX: Final = 2**31 - 1
"""Replica counts have 32 bits as in Kubernetes."""

STATUS_RULES_MAX: Final = 16
"""Maximum number of rules in one list of status values to preserve or report."""

STATUS_VALUES_MAX: Final = 64
"""Maximum number of status values in a report; more than the rules in all lists can request together."""

STATUS_VALUE_CHARS_MAX: Final = 256
"""Longest status value, in characters; the reporter cuts longer ones. As a label it may have at most 63."""

STATUS_CHARS_MAX: Final = 8_192
"""Longest whole status that a member reports of an object, in characters; a longer one is not reported."""

STATUSES_CHARS_MAX: Final = 262_144
"""Maximum characters of all members' whole statuses in one ``StatusAggregated``, which must fit into a record."""

RULES_MAX: Final = 1_000
"""Maximum number of entries in one list of rules in a new policy object: selectors, affinities, taints, weights."""

NAMES_MAX: Final = 10_000
"""Maximum number of strings in one list of a new policy object: names of clusters, values of a condition."""

DEPENDENCIES_MAX: Final = 1_000
"""Maximum number of dependencies of a workload, so that the event that lists them stays below 1 MiB."""

WORKLOADS_MAX: Final = 10_000
"""Maximum number of workloads of a new rebalancer."""

SPEC_VALUES_MAX: Final = 50_000
"""Maximum number of fields and list entries in the spec of a new policy object, at all levels together."""

LISTED_FIELDS_MAX: Final = 100
"""Maximum number of unknown fields, and of duplicate fields, that a response lists, as in Kubernetes."""


def shortened(text: str) -> str:
    """Return at most the first ``SHOWN_CHARS_MAX`` characters of an input's value, for a message."""
    return text[:SHOWN_CHARS_MAX]


def quoted(text: str) -> str:
    """Return an input's value as messages quote it: shortened, between quotation marks."""
    return repr(shortened(text))
