"""CertificateSigningRequests: who may request, approve and sign, and the certificates of approved requests.

The rules are those of Kubernetes with its signer ``kubernetes.io/kube-apiserver-client``, and of Karmada's approver of
agents. Two kinds of request need no approval by a user: those for an agent's certificate that are made with a
bootstrap token, and renewals by an agent.
"""

import base64
import binascii
import datetime as dt
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from engine.identity.certificates import CertificateError
from engine.identity.client_certificates import Subject, subject_of
from engine.kubeapi.errors import causes, status_objects
from engine.kubeapi.errors.status_objects import Cause
from engine.kubeapi.rights import rbac
from engine.kubeapi.rights.rbac import Act, UserInfo
from engine.kubeapi.schema.resources import Resource
from engine.writing.edits.objects import APPROVAL
from engine.writing.edits.rights_checks import Permission
from events import times
from events.json_values import Json, list_at, objects_at
from events.kube_objects import KubeObject

Sign = Callable[[bytes, dt.datetime, dt.timedelta], bytes]
"""A function that returns the certificate (PEM) for a request (PEM), the current time and a validity.

It raises CertificateError.
"""

_GROUP: Final = "certificates.k8s.io"
_PLURAL: Final = "certificatesigningrequests"
RESOURCE: Final = f"{_PLURAL}.{_GROUP}"
"""Qualified name of the resource."""

_SIGNER: Final = "kubernetes.io/kube-apiserver-client"
_USAGES: Final = frozenset({"client auth", "digital signature", "key encipherment"})
_DECISIONS: Final = ("Approved", "Denied")
_SECONDS_MAX: Final = 365 * 86_400
_SECONDS_MIN: Final = 600
_AGENTS: Final = "system:karmada:agents"
_AGENT: Final = "system:karmada:agent:"


class Admission(Struct, frozen=True, kw_only=True):
    """Completes a CertificateSigningRequest on each write.

    Adds the requester to a new request, and the certificate to an approved one.

    ``part`` is the written subresource, empty for the object itself. A new request that needs no approval by a user is
    approved at once, except in a dry run. Raises StatusError.
    """

    resource: Resource
    part: str
    permission: Permission
    now_ms: int
    sign: Sign | None
    is_dry_run: bool = False

    def __call__(self, value: KubeObject, before: KubeObject | None) -> KubeObject:
        """Return the object to store instead of ``before``, which is None for a new one."""
        if before is None:
            return self._requested(value)
        if not self.part:
            return value.with_fields({"spec": before.at("spec")})
        done = self._decided(before, value) if self.part == APPROVAL else self._reported(before, value)
        return value.with_fields({"status": done.object_at("status")})

    def _requested(self, value: KubeObject) -> KubeObject:
        """Return a new request with the user that makes it; raises StatusError if the request is invalid."""
        user = self.permission.user
        if wrong := list(_faults(value)):
            raise status_objects.invalid(self.resource, value.name, wrong)
        if _signer(value) == _SIGNER and rbac.MASTERS in subject_of(_request(value)).groups:
            reason = f"use of {_SIGNER} signer with {rbac.MASTERS} group is not allowed"
            raise status_objects.forbidden(self.resource, value.name, reason)
        kept = {
            key: item for key, item in value.object_at("spec").items() if key not in UserInfo.__annotations__
        }
        # The client's status is dropped: with it, the request could approve itself.
        new = value.with_fields({"spec": {**kept, **user.info}, "status": {}})
        if self.is_dry_run or not _is_approved_at_once(new, self.permission):
            return new
        return _approved_at_once(new, self.now_ms, self.sign)

    def _decided(self, before: KubeObject, now: KubeObject) -> KubeObject:
        """The request with its status after an approval or denial; an approved one gets its certificate."""
        self._check(before, "approve")
        known = before.objects_at("status", "conditions")
        kept = [condition for condition in known if condition.get("type") not in _DECISIONS]
        decisions = [
            condition
            for condition in now.objects_at("status", "conditions")
            if condition.get("type") in _DECISIONS
        ]
        if wrong := list(_decision_faults(decisions, known)):
            raise status_objects.invalid(self.resource, before.name, wrong)
        conditions = [_timed(condition, self.now_ms) for condition in decisions] + kept
        return with_certificate(_with_conditions(before, conditions), self.now_ms, self.sign)

    def _reported(self, before: KubeObject, now: KubeObject) -> KubeObject:
        """Return the request with the status that an external signer writes; approvals and denials stay as they are."""
        known, written = (value.objects_at("status", "conditions") for value in (before, now))
        decisions = [condition for condition in known if condition.get("type") in _DECISIONS]
        others = [condition for condition in written if condition.get("type") not in _DECISIONS]
        # A condition such as Failed ends the signing, so writing it needs the same right as writing a certificate.
        is_same = others == [condition for condition in known if condition.get("type") not in _DECISIONS]
        if not is_same or now.at("status", "certificate") != before.at("status", "certificate"):
            self._check(before, "sign")
        conditions = decisions + [_timed(condition, self.now_ms) for condition in others]
        # If ``written`` has only approvals or denials, drop them by storing an empty list.
        return _with_conditions(now, conditions) if conditions or written else now

    def _check(self, value: KubeObject, verb: str) -> None:
        """Raise StatusError (403) if the user may not ``verb`` (approve, sign) requests to the signer of ``value``."""
        signer, rights = str(value.at("spec", "signerName")), self.permission.rights
        names = (signer, f"{signer.partition('/')[0]}/*")
        acts = [Act(verb=verb, group=_GROUP, resource="signers", name=name) for name in names]
        if rights is not None and not any(rights.may(self.permission.user, act) for act in acts):
            reason = f'user not permitted to {verb} requests with signerName "{signer}"'
            raise status_objects.forbidden(self.resource, value.name, reason)


def _approved_at_once(value: KubeObject, now_ms: int, sign: Sign | None) -> KubeObject:
    """Return a new request, approved and with its certificate."""
    approved: Json = {
        "type": "Approved",
        "status": "True",
        "reason": "AutoApproved",
        "message": "Auto approving agent client certificate after SubjectAccessReview.",
    }
    status: Json = {"conditions": [_timed(approved, now_ms)]}
    return with_certificate(value.with_fields({"status": status}), now_ms, sign)


def _is_approved_at_once(value: KubeObject, permission: Permission) -> bool:
    """Whether a new request is for an agent's certificate that the requester may have without an approval."""
    user, rights = permission.user, permission.rights
    if _signer(value) != _SIGNER or set(value.list_at("spec", "usages")) - _USAGES:
        return False
    try:
        subject = subject_of(_request(value))
    except CertificateError:
        return False
    if subject.groups != (_AGENTS,) or not subject.name.startswith(_AGENT) or subject.has_other_names:
        return False
    parts = ["clusteragent"] + ["selfclusteragent"] * (user.name == subject.name)
    acts = (Act(verb="create", group=_GROUP, resource=_PLURAL, part=part) for part in parts)
    return rights is None or any(rights.may(user, act) for act in acts)


def with_certificate(value: KubeObject, now_ms: int, sign: Sign | None) -> KubeObject:
    """Return the request; if it is approved and names this server's signer, with the certificate or a Failed condition.

    Without ``sign`` the request is returned unchanged.
    """
    status = value.object_at("status")
    conditions = {str(condition.get("type")) for condition in objects_at(status, "conditions")}
    is_open = conditions & {*_DECISIONS, "Failed"} == {"Approved"} and not status.get("certificate")
    if sign is None or not is_open or _signer(value) != _SIGNER:
        return value
    seconds = value.at("spec", "expirationSeconds")
    valid_for = min(seconds, _SECONDS_MAX) if isinstance(seconds, int) else _SECONDS_MAX
    try:
        request = _request(value)
        _check_signable(value, subject_of(request))
        now = dt.datetime.fromtimestamp(now_ms / 1000, dt.UTC)
        certificate = sign(request, now, dt.timedelta(seconds=valid_for))
    except CertificateError as error:
        failed: Json = {
            "type": "Failed",
            "status": "True",
            "reason": "SignerValidationFailure",
            "message": str(error),
        }
        return _with_conditions(value, [*objects_at(status, "conditions"), _timed(failed, now_ms)])
    return value.with_fields({"status": {**status, "certificate": base64.b64encode(certificate).decode()}})


def _with_conditions(value: KubeObject, conditions: list[Json]) -> KubeObject:
    return value.with_fields({"status": {**value.object_at("status"), "conditions": conditions}})


def _check_signable(value: KubeObject, subject: Subject) -> None:
    """Raise CertificateError if the signer refuses the request."""
    usages = {str(usage) for usage in value.list_at("spec", "usages")}
    if "client auth" not in usages or usages - _USAGES:
        raise CertificateError(f"usages did not match: {', '.join(sorted(usages))}")
    if rbac.MASTERS in subject.groups:
        raise CertificateError(f"certificates of {rbac.MASTERS} are not signed")


def _faults(value: KubeObject) -> list[Cause]:
    errors: list[Cause] = []
    spec = value.object_at("spec")
    try:
        subject_of(_request(value))
    except CertificateError as error:
        errors.append(causes.invalid("spec.request", spec.get("request"), str(error)))
    if not list_at(spec, "usages"):
        errors.append(causes.required("spec.usages"))
    if not spec.get("signerName"):
        errors.append(causes.required("spec.signerName"))
    elif "/" not in str(spec["signerName"]):
        detail = 'must be a fully qualified domain and path of the form "example.com/signer-name"'
        errors.append(causes.invalid("spec.signerName", spec["signerName"], detail))
    seconds = spec.get("expirationSeconds")
    if isinstance(seconds, int) and seconds < _SECONDS_MIN:
        detail = f"may not specify a duration less than {_SECONDS_MIN} seconds (10 minutes)"
        errors.append(causes.invalid("spec.expirationSeconds", seconds, detail))
    return errors


def _decision_faults(decisions: list[Json], known: list[Json]) -> list[Cause]:
    kinds = {str(condition.get("type")) for condition in decisions}
    result = [
        causes.forbidden(
            "status.conditions", f'updates may not remove a condition of type "{condition.get("type")}"'
        )
        for condition in known
        if condition.get("type") in _DECISIONS and condition.get("type") not in kinds
    ]
    if len(kinds) == len(_DECISIONS):
        detail = "Approved and Denied conditions are mutually exclusive"
        result.append(causes.invalid("status.conditions", sorted(kinds), detail))
    result += [
        causes.unsupported(f"status.conditions[{index}].status", condition.get("status"), ("True",))
        for index, condition in enumerate(decisions)
        if condition.get("status") != "True"
    ]
    return result


def _signer(value: KubeObject) -> str:
    return value.text_at("spec", "signerName")


def _timed(entry: Json, now_ms: int) -> Json:
    """Return the condition; times that are missing in it are set to the current time."""
    now = times.to_seconds_text(now_ms)
    return {**entry, **{name: entry.get(name) or now for name in ("lastUpdateTime", "lastTransitionTime")}}


def _request(value: KubeObject) -> bytes:
    try:
        return base64.b64decode(value.text_at("spec", "request"), validate=True)
    except binascii.Error as error:
        raise CertificateError(str(error)) from None
