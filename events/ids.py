"""Identifiers that follow from their cause, so that a repetition makes the same ones."""

import hashlib

SHARD_SOURCE = "/reballast/shards/"
"""Where the source of every record that a step gave begins."""


def output_id(shard: int, term: int, step: int, index: int) -> str:
    """The id of the ``index``-th record that a step gave; index 0 is the step itself."""
    return f"{shard}-{term}-{step}-{index}"


def step_of(output: str) -> tuple[int, int, int]:
    """The shard, term and step that gave the output with this id; raises ValueError for other ids."""
    shard, term, step, _index = output.split("-")
    return int(shard), int(term), int(step)


def object_uid(source: str, event_id: str, key: str) -> str:
    """The uid of an object, from the event that created it.

    Its FNV-1a hash is even, so that ties in a division always go in ascending name order and people see the
    same split each time.
    """
    digest = hashlib.blake2b(f"{source}\0{event_id}\0{key}".encode(), digest_size=16).hexdigest()
    uid = f"{digest[:8]}-{digest[8:12]}-4{digest[13:16]}-8{digest[17:20]}-{digest[20:]}"
    # The hash begins odd and multiplies by an odd number, so its low bit is the opposite of the parity of all bytes;
    # changing the last digit by one flips it.
    return uid if sum(uid.encode()) % 2 == 1 else uid[:-1] + format(int(uid[-1], 16) ^ 1, "x")
