"""The change of a plan as text: the events of its requests, and its faults."""

from typing import Final

from engine.http.summaries import event_name
from engine.plans import drills, summaries
from engine.plans.questions import Question
from events import clusters, codec, specs
from events.kube_objects import KubeObject
from events.records import Record

_SHOWN_MAX: Final = 3


def text(question: Question, outage: drills.Outage | None) -> str:
    """Return the change in one line, as ``cluster-tainted member1 maintenance:NoExecute``.

    ``outage`` is the failure that a plan of a drill predicts.
    """
    if outage is not None:
        faults = [f"failure of {outage.domain} {outage.name}"]
    else:
        faults = [f"{failure.member} {failure.kind}" for failure in question.failures]
    events = [_event(hypothetical.record) for hypothetical in question.inputs[:_SHOWN_MAX]]
    more = len(question.inputs) + len(faults) - _SHOWN_MAX
    changes = ", ".join((events + faults)[:_SHOWN_MAX])
    return changes + (f" and {more} more" if more > 0 else "") or "no change"


def _event(record: Record) -> str:
    decoded = codec.decode(record)
    if not isinstance(decoded, codec.Decoded):
        return "malformed"
    match decoded.data:
        case (
            clusters.ClusterTainted(taint=clusters.Taint(key=key, effect=effect))
            | clusters.ClusterUntainted(key=key, effect=effect)
        ):
            detail = f" {key}:{effect}" if effect else f" {key}"
        case specs.TemplateApplied(manifest=manifest):
            replicas = KubeObject.from_json(manifest).at("spec", "replicas")
            detail = f" with {summaries.count(replicas, 'replica')}" if isinstance(replicas, int) else ""
        case _:
            detail = ""
    return f"{event_name(decoded.envelope.type)} {decoded.envelope.subject}{detail}"
