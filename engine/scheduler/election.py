"""Leader election by a Lease: of several schedulers with the same name, only one writes.

The lease of another process counts as expired if it was not renewed for its duration, measured by this process's own
clock, so the clocks of machines need not agree. The leader stops well before others may take over.
"""

import time
from collections.abc import Callable
from typing import Final

import anyio
from msgspec import Struct

from engine import diagnostics
from engine.agent.api_errors import ApiError
from engine.agent.discovery import Resource
from engine.agent.kubeconfigs import KubeconfigError
from engine.agent.member_api import MemberApi
from events import times
from events.json_values import Json, as_text
from events.kube_objects import KubeObject

DURATION_S: Final = 15
"""Seconds without a renewal after which other processes may take over."""

_LEADS_S: Final = 10.0
"""Seconds without a renewal after which this process writes no more."""

_RETRY_S: Final = 2.0
_CAMPAIGN_S: Final = 4.0
"""Time limit in seconds of one renewal, so that a second attempt fits into ``_LEADS_S``."""

_LEASE: Final = Resource(api_version="coordination.k8s.io/v1", kind="Lease", plural="leases", namespaced=True)
_log = diagnostics.logger(__name__)


class LeaseName(Struct, frozen=True):
    """Namespace and name of a Lease."""

    namespace: str
    name: str


class Election:
    """Campaigns for a Lease as ``identity``; ``leads`` is valid at the moment of the call."""

    def __init__(self, api: MemberApi, lease: LeaseName, identity: str, clock_ms: Callable[[], int]) -> None:
        self._api = api
        self._lease = lease
        self._identity = identity
        self._clock_ms = clock_ms
        self._until_s = 0.0
        self._seen = ("", 0.0)
        self._was_leading: bool | None = None
        """None before the first attempt to get the lease, so that the first result is logged."""
        self.term = 0
        """How often this process has begun to lead; a lease that lapsed and was renewed begins another term."""

    def leads(self) -> bool:
        """Whether this process may write now."""
        return time.monotonic() < self._until_s

    async def run(self, changed: Callable[[], None]) -> None:
        """Campaign until cancelled; ``changed`` is called when the leadership may have changed."""
        try:
            while True:
                try:
                    with anyio.fail_after(_CAMPAIGN_S):
                        await self._campaign()
                except (KubeconfigError, ApiError, TimeoutError) as error:
                    reason = str(error) or "the API does not answer"
                    _log.warning("lease request failed; retrying", lease=self._lease.name, reason=reason)
                self._report()
                changed()
                await anyio.sleep(_RETRY_S)
        finally:
            with anyio.CancelScope(shield=True), anyio.move_on_after(_RETRY_S):
                await self._release()

    def _report(self) -> None:
        if self.leads() != self._was_leading:
            self._was_leading = self.leads()
            _log.info("leading" if self._was_leading else "waiting for the lease", lease=self._lease.name)

    async def _campaign(self) -> None:
        started_s = time.monotonic()
        lease = await self._api.get(_LEASE, self._lease.namespace, self._lease.name)
        if lease is None:
            head: Json = {"namespace": self._lease.namespace, "name": self._lease.name}
            lease = KubeObject({**_HEAD, "metadata": head, "spec": self._spec({}, 0)})
            await self._api.create(_LEASE, lease)
        else:
            version = lease.resource_version
            if not self._is_free(lease, version, started_s):
                self._until_s = 0.0
                return
            change: Json = {
                "metadata": {"resourceVersion": version},
                "spec": self._spec(lease.object_at("spec"), 1),
            }
            await self._api.patch(_LEASE, self._lease.namespace, self._lease.name, change)
        if not self.leads():
            self.term += 1
        self._until_s = started_s + _LEADS_S

    def _is_free(self, lease: KubeObject, version: str, now_s: float) -> bool:
        """Whether this process may take the lease: it holds it already, or the lease was released or has expired."""
        spec = lease.object_at("spec")
        holder = as_text(spec.get("holderIdentity"))
        if holder in {"", self._identity}:
            return True
        if self._seen[0] != version:
            self._seen = (version, now_s)
        duration = spec.get("leaseDurationSeconds")
        return now_s - self._seen[1] > (duration if isinstance(duration, int) else DURATION_S)

    def _spec(self, before: Json, added: int) -> Json:
        now = times.to_text(self._clock_ms()).replace("Z", "000Z")
        spec: Json = {
            "holderIdentity": self._identity,
            "leaseDurationSeconds": DURATION_S,
            "renewTime": now,
        }
        if before.get("holderIdentity") != self._identity:
            transitions = before.get("leaseTransitions")
            spec["acquireTime"] = now
            spec["leaseTransitions"] = (transitions if isinstance(transitions, int) else 0) + added
        return spec

    async def _release(self) -> None:
        """Release the lease, so that another process can take over at once."""
        if not self.leads():
            return
        self._until_s = 0.0
        try:
            lease = await self._api.get(_LEASE, self._lease.namespace, self._lease.name)
            if lease is not None and lease.at("spec", "holderIdentity") == self._identity:
                version = lease.resource_version
                change: Json = {"metadata": {"resourceVersion": version}, "spec": {"holderIdentity": ""}}
                await self._api.patch(_LEASE, self._lease.namespace, self._lease.name, change)
        except (KubeconfigError, ApiError) as error:
            _log.warning("lease not released; it expires", lease=self._lease.name, error=str(error))


_HEAD: Final[Json] = {"apiVersion": _LEASE.api_version, "kind": _LEASE.kind}
