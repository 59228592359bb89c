"""Limits on what is taken in; each refusal names the one that was passed."""

from typing import Final

OBJECT_BYTES_MAX: Final = 1024 * 1024
"""Largest object, as Kubernetes' own store allows it."""

RECORD_BYTES_MAX: Final = 2 * 1024 * 1024
"""Largest record value; topics are set up for it."""

KEY_BYTES_MAX: Final = 1024
HEADER_BYTES_MAX: Final = 16 * 1024
DEPTH_MAX: Final = 64
"""Deepest nesting of a JSON or YAML document."""

RECENT_IDS: Final = 65_536
"""Records of a partition within which a repeated (source, id) is known as a repetition."""

REPLICAS_MAX: Final = 2**31 - 1
"""Kubernetes counts replicas in 32 bits."""
