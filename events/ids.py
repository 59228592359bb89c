"""Identifiers derived from their cause, so that processing the cause again produces the same identifiers."""

import hashlib

SHARD_SOURCE = "/reballast/shards/"
"""Prefix of the CloudEvents source of every record that a step outputs."""


def output_id(shard: int, term: int, step: int, index: int) -> str:
    """Return the id of the ``index``-th output of a step; index 0 is the step itself."""
    return f"{shard}-{term}-{step}-{index}"


def step_of(output: str) -> tuple[int, int, int]:
    """Return the shard, term and step in an output id; raises ValueError for other ids."""
    shard, term, step, _index = output.split("-")
    return int(shard), int(term), int(step)


def object_uid(source: str, event_id: str, key: str) -> str:
    """Return the uid of an object, derived from the event that created it.

    The FNV-1a hash of every uid is even, so that the scheduler breaks ties in a division always in ascending
    order of the cluster names, and users see the same split each time.
    """
    digest = hashlib.blake2b(f"{source}\0{event_id}\0{key}".encode(), digest_size=16).hexdigest()
    uid = f"{digest[:8]}-{digest[8:12]}-4{digest[13:16]}-8{digest[17:20]}-{digest[20:]}"
    # FNV-1a starts odd and multiplies by an odd prime, so the low bit of the hash is the opposite of the
    # parity of all bytes; changing the last digit by one flips it.
    return uid if sum(uid.encode()) % 2 == 1 else uid[:-1] + format(int(uid[-1], 16) ^ 1, "x")
