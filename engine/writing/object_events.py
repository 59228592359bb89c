"""Events that write, delete, or set the status of one object; ``expects`` is the version they were computed from."""

import msgspec

from engine.writing.targets import Target, encode
from events import policies, shapes, specs
from events.json_values import Json


def applied(target: Target, raw: bytes, expects: int) -> shapes.Event:
    """The event that writes an object; ``expects`` is 0 for a new one."""
    manifest = msgspec.Raw(raw)
    match target.route:
        case "template":
            return specs.TemplateApplied(manifest=manifest, expects=expects)
        case "rebalancer":
            return specs.RebalancerApplied(manifest=manifest, expects=expects)
        case "namespace":
            return policies.NamespaceApplied(manifest=manifest, expects=expects)
        case "interpreter":
            return policies.InterpreterApplied(manifest=manifest, expects=expects)
        case "configuration":
            return policies.ConfigurationApplied(manifest=manifest, expects=expects)
        case _:
            return policies.PolicyApplied(manifest=manifest, expects=expects)


def deleted(target: Target, expects: int) -> shapes.Event:
    """The event that deletes an object."""
    match target.route:
        case "template":
            return specs.TemplateDeleted(template=target.reference, expects=expects)
        case "configuration":
            return policies.ConfigurationDeleted(object=target.reference, expects=expects)
        case "rebalancer":
            return specs.RebalancerDeleted(name=target.name, expects=expects)
        case "namespace":
            return policies.NamespaceDeleted(name=target.name, expects=expects)
        case "interpreter":
            return policies.InterpreterDeleted(name=target.name, expects=expects)
        case _:
            policy = shapes.PolicyRef(kind=target.kind, name=target.name, namespace=target.namespace)
            return policies.PolicyDeleted(policy=policy, expects=expects)


def status_written(
    target: Target, status: Json, owned: tuple[shapes.FieldsOwner, ...], expects: int
) -> shapes.Event:
    """The event that writes an object's status; only templates and configuration have a writable status."""
    fields = msgspec.json.decode(encode(status), type=shapes.Object)
    if target.route == "configuration":
        return policies.ConfigurationStatusWritten(
            object=target.reference, status=fields, managed_fields=owned, expects=expects
        )
    return specs.TemplateStatusWritten(
        template=target.reference, status=fields, managed_fields=owned, expects=expects
    )
