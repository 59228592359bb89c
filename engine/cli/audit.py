"""``reballast audit``: decide every recorded step again with the rules of this release, or with changed policies."""

import os
from typing import Annotated, Final

import msgspec
from cyclopts import Parameter, validators

from engine.cli import apply, failures, log_checkpoint, log_verify, next_commands, options, output
from engine.karmada import defaults
from engine.karmada.default_tolerations import TolerationSeconds
from engine.objects import manifests, policies
from engine.overrides import policies as override_policies
from engine.process import log_locations, proofs
from engine.proof import audit as audits
from engine.proof import rules, verification
from engine.reconcilers.explanation_types import Explained
from events import keys, kube_objects
from events.json_values import Json, as_list, object_at
from events.kube_objects import KubeObject
from events.shapes import PolicyRef
from events.validation import manifests as validation

Toleration = Annotated[
    int | None,
    Parameter(
        help="Assume that policies without such a toleration tolerate not-ready and unreachable clusters for this "
        "many seconds.",
        validator=validators.Number(gte=0, lte=2**31 - 1),
    ),
]


def audit(
    *,
    log: log_checkpoint.LogOption = "",
    first: log_verify.From = 1,
    last: log_verify.To = None,
    toleration_default: Toleration = None,
    policy: Annotated[
        list[apply.FileName],
        Parameter(
            name=["--policy", "-f"], negative=(), help="Files with policies that replace the recorded ones."
        ),
    ] = [],  # noqa: B006  # cyclopts makes a new list for each call
    processes: options.Processes = None,
    server: options.Server = options.SERVER,
) -> int:
    specs = _specs(policy)
    changed = rules.Rules(
        specs={ref: spec for ref, spec in specs.items() if ref.kind in policies.KINDS},
        overrides={ref: spec for ref, spec in specs.items() if ref.kind in override_policies.KINDS},
        tolerated=TolerationSeconds(not_ready=toleration_default, unreachable=toleration_default),
    )
    location = log_checkpoint.location_of(log, server)
    with log_verify.proof_progress(location, next_commands.check_log()) as show:
        _check_recorded(location, changed)
        result = proofs.audit(
            location,
            changed,
            verification.Scope(first=first, last=last),
            processes=processes or len(os.sched_getaffinity(0)),
            show=show,
        )
    if result.unreadable:
        shards = "; ".join(f"shard {shard}: {error}" for shard, error in sorted(result.unreadable.items()))
        raise failures.Failure(f"a part of the log cannot be read: {shards}", next_commands.check_log())
    server.show(result, _show)
    return failures.DIFFERENT if result.differing or result.manifests else failures.OK


def _check_recorded(location: log_locations.LogLocation, changed: rules.Rules) -> None:
    """Raise Failure if the log does not contain a changed policy, since there is then no policy to replace."""
    unrecorded = log_locations.run_on(location, lambda log: rules.unrecorded(log, changed))
    if unrecorded:
        ref = unrecorded[0]
        raise failures.Failure(
            f"the log has no {ref.kind} {keys.full_name(ref.namespace, ref.name)} to replace",
            "correct its name and namespace",
        )


def _specs(names: list[apply.FileName]) -> dict[PolicyRef, Json]:
    """The specs of the policies in files, with defaults. Raises Failure for an object that is not a valid policy."""
    result: dict[PolicyRef, Json] = {}
    for name, content in apply.read(names):
        for entry in manifests.read(content, file=name, limits=apply.LIMITS):
            if isinstance(entry, manifests.Fault):
                field = f"{entry.field}: " if entry.field else ""
                raise failures.Failure(f"{name}: {field}{entry.reason}", entry.remedy)
            ref, policy = _policy(name, KubeObject(entry.value))
            result[ref] = policy.object_at("spec")
    return result


def _policy(file: str, value: KubeObject) -> tuple[PolicyRef, KubeObject]:
    kind = value.kind
    if kind not in (*policies.KINDS, *override_policies.KINDS):
        raise failures.Failure(f"{file}: {kind} is not a policy", f"write a {policies.PROPAGATION_POLICY}")
    namespace = "" if kind.startswith("Cluster") else value.namespace or "default"
    named = value.with_metadata({"namespace": namespace}) if namespace else value
    filled = defaults.with_defaults(named)
    raw = filled.raw
    try:
        manifest = msgspec.json.decode(raw, type=kube_objects.Manifest)
        validation.check(manifest, raw)
    except kube_objects.Refusal as refusal:
        raise failures.Failure(f"{file}: {refusal.field}: {refusal.reason}", "correct the policy") from None
    except msgspec.MsgspecError as error:
        raise failures.Failure(f"{file}: {error}", "correct the policy") from None
    ref = PolicyRef(kind=kind, name=manifest.metadata.name, namespace=namespace)
    return ref, filled


def _show(audit: audits.Audit) -> None:
    output.print_line(f"{audit.steps:,} steps with {audit.decisions:,} decisions decided again")
    if audit.differing:
        _show_decisions(audit)
    else:
        output.print_line("all decisions are the same")
    if audit.manifests:
        _show_manifests(audit)


def _show_manifests(audit: audits.Audit) -> None:
    output.print_line("")
    rows = [(group.works, group.reason) for group in audit.manifests]
    output.table(("MANIFESTS", "DIFFERENCE"), rows)
    for group in audit.manifests:
        output.print_line("")
        output.print_line(output.clean(group.reason))
        for example in group.examples:
            output.print_line(output.clean(f"  {example.key} in {example.cluster}"))
            for line in example.diff:
                output.print_line(output.clean(f"    {line}"))


def _show_decisions(audit: audits.Audit) -> None:
    output.print_line(f"{audit.differing:,} decisions differ, in {audit.differing_steps:,} steps:")
    output.print_line("")
    output.table(
        ("DECISIONS", "KEYS", "DIFFERENCE"),
        [(group.count, group.keys, group.reason) for group in audit.groups],
    )
    for group in audit.groups:
        output.print_line("")
        output.print_line(output.clean(group.reason))
        for example in group.examples:
            _show_example(example)


def _show_example(example: audits.Difference) -> None:
    where = f"shard {example.shard} step {example.step}, number {example.number}, release {example.release}"
    output.print_line(output.clean(f"  {example.key}  {example.time}  ({where})"))
    for side, events, explained in (
        ("recorded", example.recorded, example.recorded_explanation),
        ("decided", example.decided, example.decided_explanation),
    ):
        for name, data in events.items():
            fields = (f"{field}={_text(data[field])}" for field in _IMPORTANT_FIELDS if data.get(field))
            output.print_line(output.clean(" ".join((f"    {side}: {name}", *fields)).rstrip()))
        if explained is not None:
            output.print_line(output.clean(f"      {_explanation_text(explained)}"))


_IMPORTANT_FIELDS: Final = (
    "clusters",
    "cluster",
    "policy",
    "reason",
    "message",
    "purgeMode",
    "replicas",
    "result",
)


def _text(value: object) -> str:
    if (items := as_list(value)) is not None:
        return ",".join(map(_text, items))
    named = object_at(value)
    if "name" not in named:
        return str(value)
    return f"{named['name']}:{named['replicas']}" if "replicas" in named else str(named["name"])


def _explanation_text(explained: Explained) -> str:
    """Return an explanation in one line; ``--json`` prints the whole explanation."""
    placed = ", ".join(f"{name}: {count}" for name, count in explained.clusters.items()) or "nowhere"
    reason = f" ({explained.condition}: {explained.message})" if explained.message else ""
    return f"{explained.trigger}, {explained.mode}, {explained.replicas} replicas → {placed}{reason}"
