"""Checkpoints of a log: signed digests of its history, to be kept where no process that writes the log can write.

The chain of steps needs no secret key: a process that can write the log could rewrite all of it, with valid digests.
A checkpoint contains the digest of each shard's last step, which covers all steps before it with their inputs and
outputs, and a digest over all records in number order. It also contains the first bytes of the digest of each step
since the previous checkpoint: they identify the first step that differs. To compare a log with a checkpoint, the
checkpoint is computed again from the log.

Checkpoints are signed with Ed25519 keys (RFC 8032).
"""

import base64
import hashlib
from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Final

import msgspec
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from msgspec import Struct

from engine.log import port, reading
from engine.proof.record_origins import Finding
from events import chain, codec, decisions, times, topics
from events.json_values import DECODING_ERRORS
from events.records import StoredRecord

_FINGERPRINT_CHARS: Final = 16


class SigningError(Exception):
    """A key cannot be used, or it did not sign a line; the message is the reason."""


class _Signed(Struct, frozen=True):
    """A signed line: the unchanged bytes of the content, the key's fingerprint, and the signature in base64."""

    content: msgspec.Raw
    key: str
    signature: str


def new_keys() -> tuple[bytes, bytes]:
    """Return a new private key and its public key, both as PEM."""
    private = Ed25519PrivateKey.generate()
    own = private.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    public = private.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return own, public


def private_key(pem: bytes) -> Ed25519PrivateKey:
    """Read a private key. Raises SigningError."""
    try:
        key = serialization.load_pem_private_key(pem, None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise SigningError(f"it is not a private key in PEM without a password: {error}") from None
    if not isinstance(key, Ed25519PrivateKey):
        raise SigningError("it is not an Ed25519 key")
    return key


def public_key(pem: bytes) -> Ed25519PublicKey:
    """Read a public key. Raises SigningError."""
    try:
        key = serialization.load_pem_public_key(pem)
    except (ValueError, UnsupportedAlgorithm) as error:
        raise SigningError(f"it is not a public key in PEM: {error}") from None
    if not isinstance(key, Ed25519PublicKey):
        raise SigningError("it is not an Ed25519 key")
    return key


def fingerprint(key: Ed25519PublicKey) -> str:
    """Return the first 16 hexadecimal digits of the SHA-256 of a public key, which identify the key."""
    raw = key.public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
    return hashlib.sha256(raw).hexdigest()[:_FINGERPRINT_CHARS]


def signed(content: bytes, key: Ed25519PrivateKey) -> bytes:
    """Sign content in JSON; return the line with the content and its signature, without a line feed."""
    signature = base64.b64encode(key.sign(content)).decode()
    return msgspec.json.encode(_Signed(msgspec.Raw(content), fingerprint(key.public_key()), signature))


def signed_content(line: bytes, key: Ed25519PublicKey) -> bytes:
    """Return the content of a line that this key signed. Raises SigningError."""
    try:
        signed = msgspec.json.decode(line, type=_Signed)
        signature = base64.b64decode(signed.signature, validate=True)
    except DECODING_ERRORS as error:
        raise SigningError(f"it is not a signed line: {error}") from None
    if signed.key != fingerprint(key):
        raise SigningError(f"it is signed with the key {signed.key}, not with {fingerprint(key)}")
    try:
        key.verify(signature, bytes(signed.content))
    except InvalidSignature:
        raise SigningError("its content was changed after it was signed") from None
    return bytes(signed.content)


_FORMAT: Final = "reballast-checkpoint-1"
_DIGEST_BYTES: Final = 32
_MARK_BYTES: Final = 4
_STEPS_MAX: Final = 50_000
"""Maximum number of steps in a checkpoint, so that it stays below 1 MB; more steps need several checkpoints."""


class Head(Struct, frozen=True):
    """The last step of a shard: number, term, digest, and offset in ``decisions``; 0 and empty if there is no step.

    ``marks`` has the first bytes of the digest of each step since the previous checkpoint, in base64.
    """

    shard: int
    step: int
    term: int
    digest: str
    offset: int
    marks: str


class Checkpoint(Struct, frozen=True, kw_only=True):
    """The history of a log up to the sequence number ``number``.

    ``records`` is the digest over all these records; ``previous`` is the SHA-256 of the previous checkpoint's content,
    empty for the first one; ``time`` is when the checkpoint was made.
    """

    format: str = _FORMAT
    number: int
    time: str
    records: str
    heads: list[Head]
    previous: str


class CheckpointError(Exception):
    """Checkpoints cannot be read or continued; the message says why."""


def encode(checkpoint: Checkpoint) -> bytes:
    """Return a checkpoint as JSON, the content that is signed."""
    return msgspec.json.encode(checkpoint)


def read(lines: Iterable[bytes], key: Ed25519PublicKey) -> list[Checkpoint]:
    """Return the checkpoints in signed lines, which must be ordered from the oldest to the newest.

    Raises CheckpointError if a line is not signed by the key, or if a checkpoint between two others is missing.
    """
    result: list[Checkpoint] = []
    previous = ""
    for index, line in enumerate(filter(None, (line.strip() for line in lines)), 1):
        try:
            content = signed_content(line, key)
            checkpoint = msgspec.json.decode(content, type=Checkpoint)
        except (SigningError, msgspec.MsgspecError) as error:
            raise CheckpointError(f"checkpoint {index}: {error}") from None
        if checkpoint.format != _FORMAT:
            raise CheckpointError(f"checkpoint {index} has the format {checkpoint.format}, not {_FORMAT}")
        if result and checkpoint.previous != previous:
            raise CheckpointError(f"checkpoint {index} does not continue the one before: some are missing")
        result.append(checkpoint)
        previous = digest(content)
    return result


def digest(content: bytes) -> str:
    """Return the digest of a checkpoint's content, which the next checkpoint contains as ``previous``."""
    return hashlib.sha256(content).hexdigest()


class _History:
    """Digests over all records and over each shard's steps, continued from a checkpoint (None: from the start)."""

    def __init__(self, start: Checkpoint | None) -> None:
        self.number = 0 if start is None else start.number
        self._records = b"" if start is None else bytes.fromhex(start.records)
        self._chains = {shard: chain.Chain(shard) for shard in range(topics.SHARDS)}
        for head in () if start is None else start.heads:
            self._chains[head.shard] = chain.Chain(head.shard, head.step, head.term, head.digest)
        self._offsets = {head.shard: head.offset for head in (() if start is None else start.heads)}
        self._marks: dict[int, bytearray] = {}
        self.steps = 0

    def take(self, record: StoredRecord) -> None:
        """Add the next record."""
        self.number = record.number
        where = f"{record.number}\0{record.position}\0".encode()
        content = b"".join((self._records, where, record.checksum))
        self._records = hashlib.blake2b(content, digest_size=_DIGEST_BYTES).digest()
        if record.topic != topics.DECISIONS:
            return
        taken = codec.event_of(record)
        if not isinstance(taken, decisions.StepTaken):
            return
        shard_chain = self._chains[record.partition]
        if shard_chain.take(record, taken):
            mark = bytes.fromhex(shard_chain.digest)[:_MARK_BYTES]
            self._marks.setdefault(record.partition, bytearray()).extend(mark)
            self._offsets[record.partition] = record.offset
            self.steps += 1

    def checkpoint(self, time_ms: int, previous: str) -> Checkpoint:
        """Return a checkpoint of the records taken so far; later steps belong to the next one."""
        heads = [
            Head(
                shard,
                chain.number,
                chain.term,
                chain.digest,
                self._offsets.get(shard, 0),
                base64.b64encode(self._marks.get(shard, b"")).decode(),
            )
            for shard, chain in self._chains.items()
        ]
        self._marks = {}
        self.steps = 0
        return Checkpoint(
            number=self.number,
            time=times.to_text(time_ms),
            records=self._records.hex(),
            heads=heads,
            previous=previous,
        )


async def compute(
    log: port.NumberedLog, time_ms: int, last: Checkpoint | None = None
) -> AsyncIterator[Checkpoint]:
    """Yield checkpoints of the records after the ``last`` checkpoint: none if there are no records, or several if many.

    Raises CheckpointError if the log does not contain the steps with which ``last`` ends.
    """
    if last is not None:
        await _check_end(log, last)
    history = _History(last)
    previous = "" if last is None else digest(encode(last))
    until = log.last_number()
    made_number = history.number
    async for record in reading.of_all(log, history.number, until):
        history.take(record)
        if history.steps >= _STEPS_MAX:
            checkpoint = history.checkpoint(time_ms, previous)
            previous, made_number = digest(encode(checkpoint)), checkpoint.number
            yield checkpoint
    # Compare the last record's number, not ``until``: on Kafka, numbers have gaps, and no record may have this number.
    if history.number > made_number:
        yield history.checkpoint(time_ms, previous)


async def differing(log: port.NumberedLog, checkpoints: Sequence[Checkpoint]) -> list[Finding]:
    """Return how the log differs from the first checkpoint that does not agree with it; empty if all agree."""
    try:
        return await _differing(log, checkpoints)
    except port.LogCorruptedError as error:
        return [Finding(kind="checkpoint", where="log", message=f"the log cannot be compared: {error}")]


async def _differing(log: port.NumberedLog, checkpoints: Sequence[Checkpoint]) -> list[Finding]:
    # Begin with the log's first record, even if the oldest checkpoints are missing: a checkpoint's digest covers all
    # records before it.
    history = _History(None)
    for checkpoint in checkpoints:
        last = min(checkpoint.number, log.last_number())
        async for record in reading.of_all(log, history.number, last):
            history.take(record)
        recomputed = history.checkpoint(0, "")
        findings = _compare(checkpoint, recomputed)
        if findings:
            return findings
    return []


def _compare(checkpoint: Checkpoint, recomputed: Checkpoint) -> list[Finding]:
    of = f"the checkpoint of {checkpoint.time}"
    findings: list[Finding] = []
    for head, own in zip(checkpoint.heads, recomputed.heads, strict=True):
        if (head.step, head.term, head.digest) == (own.step, own.term, own.digest):
            continue
        step = _first_differing(head, own)
        if step > own.step:
            message = f"the log ends at step {own.step} of this shard; {of} has {head.step}"
        elif step > head.step:
            message = f"the log has this step before number {checkpoint.number}; {of} does not"
        else:
            before = _step_before_marks(head)
            is_first = step > before + 1 or _step_before_marks(own) == before
            began = "from here on" if is_first else "here or before"
            message = f"the step differs from the one in {of}, so the log was rewritten {began}"
        findings.append(Finding(kind="checkpoint", where=f"shard {head.shard} step {step}", message=message))
    if recomputed.number < checkpoint.number:
        message = f"the log ends at number {recomputed.number}; {of} has {checkpoint.number}"
        findings.append(Finding(kind="checkpoint", where=f"number {recomputed.number + 1}", message=message))
    elif not findings and checkpoint.records != recomputed.records:
        message = f"the records up to here differ from those of {of}, although no step differs"
        findings.append(Finding(kind="checkpoint", where=f"number {checkpoint.number}", message=message))
    return findings


def _first_differing(head: Head, own: Head) -> int:
    """Return the number of the first step that differs or is missing; ``own`` is ``head`` computed from the log."""
    expected, recorded = base64.b64decode(head.marks), base64.b64decode(own.marks)
    step_before_marks = _step_before_marks(head)
    # If the checkpoint before that of ``head`` is missing, ``own`` has marks of earlier steps too: skip them.
    recorded = recorded[max(step_before_marks - _step_before_marks(own), 0) * _MARK_BYTES :]
    for at in range(0, max(len(expected), len(recorded)), _MARK_BYTES):
        if expected[at : at + _MARK_BYTES] != recorded[at : at + _MARK_BYTES]:
            return step_before_marks + at // _MARK_BYTES + 1
    return head.step


def _step_before_marks(head: Head) -> int:
    """Return the number of the last step before the steps that have marks."""
    return head.step - len(base64.b64decode(head.marks)) // _MARK_BYTES


async def _check_end(log: port.NumberedLog, checkpoint: Checkpoint) -> None:
    """Raise CheckpointError if the log does not contain each shard's last step as it is in the checkpoint."""
    if log.last_number() < checkpoint.number:
        message = f"the log ends at number {log.last_number()}, the checkpoint of {checkpoint.time} at"
        raise CheckpointError(f"{message} {checkpoint.number}: records are missing")
    for head in checkpoint.heads:
        records = await log.read(topics.DECISIONS, head.shard, head.offset, 1) if head.step else []
        if head.step and (not records or chain.step_digest(records[0].value) != head.digest):
            message = f"shard {head.shard} step {head.step} differs from the checkpoint of {checkpoint.time}"
            raise CheckpointError(f"{message}: the log was rewritten before it")
