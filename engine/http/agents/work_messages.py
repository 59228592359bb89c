"""Messages to agents about works and manifests, built from log records or from the projection.

Manifests have the labels and annotations that refer to their template, policy, binding and Work (``domain.marks``).
"""

import hashlib

import msgspec

from engine.agent import messages
from engine.domain import marks
from engine.works.manifests import Rendered
from events import codec, shapes, works
from events.json_values import canonical_json
from events.kube_objects import KubeObject
from events.records import StoredRecord
from projections.works import Work


def of_record(record: StoredRecord) -> messages.Work | None:
    """Return the message about the work in a record of ``works``; None if the record has no work."""
    data = codec.event_of(record)
    return None if data is None else _of_event(data)


def of_current(key: str, work: Work) -> messages.Work:
    """Convert a binding's work of the projection to the message for its agent."""
    return _message(key, work.name, work, is_suspended=work.suspended)


def _of_event(data: shapes.Event) -> messages.Work | None:
    match data:
        case works.WorkApplied():
            name = marks.work_name(data.template.kind, data.template.namespace, data.template.name)
            return _message(data.key, name, data, is_suspended=False)
        case works.WorkRemoved():
            return messages.Work(
                key=data.key, state="removed", term=data.term, step=data.step, preserved=data.preserved
            )
        case works.WorkSuspended():
            return messages.Work(key=data.key, state="suspended", term=data.term, step=data.step)
        case _:
            return None


def _message(key: str, name: str, work: Work | works.WorkApplied, *, is_suspended: bool) -> messages.Work:
    return messages.Work(
        key=key,
        state="suspended" if is_suspended else "applied",
        term=work.term,
        step=work.step,
        name=name,
        template=work.template,
        digest=work.digest,
        replicas=work.replicas,
        overrides=_digest(work),
        reading=work.reading,
    )


def _digest(work: Work | works.WorkApplied) -> str:
    """Return a digest of a work's ``overrides``, ``labels``, ``completions`` and ``reading``; empty if all are unset.

    Works of the same template with the same replicas differ only in these fields.
    """
    if work.completions is not None:
        differs = canonical_json((work.overrides, work.labels, work.reading, work.completions))
    elif work.labels or work.reading:
        differs = canonical_json((work.overrides, work.labels, work.reading))
    else:
        differs = canonical_json(work.overrides) if work.overrides else b""
    return hashlib.blake2b(differs, digest_size=8).hexdigest() if differs else ""


def manifest_message(rendered: Rendered, propagation: marks.Propagation) -> messages.Manifest:
    """Return the message with a rendered manifest, to which the labels and annotations of ``propagation`` are added.

    If rendering failed, the message has the ``fault`` and an empty manifest.
    """
    if rendered.fault:
        return messages.Manifest(manifest=msgspec.Raw(rendered.manifest), fault=rendered.fault)
    value = KubeObject.from_json(rendered.manifest)
    return messages.Manifest(
        manifest=marks.propagated(value, propagation).raw,
        conflict_resolution="Overwrite" if propagation.overwrites else "Abort",
    )
