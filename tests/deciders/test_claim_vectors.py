"""Policy matching against Karmada's recorded answers: one case per feature."""

from typing import Literal

import msgspec
import pytest

from engine.deciders import claims
from engine.objects import policies
from events import shapes
from tests import vectors

_GROUP = "policy-all"


class _Metadata(msgspec.Struct):
    name: str
    namespace: str = ""
    labels: dict[str, str] = {}


class _Resource(msgspec.Struct, rename="camel"):
    api_version: str
    kind: str
    metadata: _Metadata

    @property
    def ref(self) -> shapes.WorkloadRef:
        return shapes.WorkloadRef(
            api_version=self.api_version,
            kind=self.kind,
            name=self.metadata.name,
            namespace=self.metadata.namespace,
        )

    @property
    def labels(self) -> dict[str, str]:
        return self.metadata.labels


class _Input(msgspec.Struct, rename="camel"):
    op: Literal["propagate", "preempt"]
    resource: _Resource
    namespaced: list[dict[str, object]] = msgspec.field(name="policies")
    cluster_policies: list[dict[str, object]]
    claimed_by: shapes.PolicyRef | None = None
    by: shapes.PolicyRef | None = None
    preemption_gate: bool = False

    def decoded_policies(self) -> list[policies.Policy]:
        """Return the policies, decoded as the engine decodes them."""
        kinds = {
            policies.PROPAGATION_POLICY: self.namespaced,
            policies.CLUSTER_PROPAGATION_POLICY: self.cluster_policies,
        }
        return [
            policies.decode(msgspec.json.encode(manifest | {"kind": kind}))
            for kind, manifests in kinds.items()
            for manifest in manifests
        ]


class _Answer(msgspec.Struct, rename="camel", frozen=True):
    claimed_by: shapes.PolicyRef | None
    error: str


def _index(known: list[policies.Policy]) -> claims.PolicyIndex:
    index = claims.PolicyIndex()
    for policy in known:
        index.put(policy)
    return index


def _propagate(case: _Input) -> _Answer:
    verdict = claims.claim(_index(case.decoded_policies()), case.resource, case.claimed_by)
    error = "no matched propagation policy" if verdict.outcome == claims.Outcome.UNMATCHED else ""
    return _Answer(verdict.policy.ref if verdict.policy else None, error)


def _preempt(case: _Input) -> _Answer:
    """Consider only the policy ``by``, and only if the template is claimed."""
    if case.claimed_by is None:
        return _Answer(None, "")
    involved = [p for p in case.decoded_policies() if p.ref in (case.by, case.claimed_by)]
    verdict = claims.claim(_index(involved), case.resource, case.claimed_by, preemption=case.preemption_gate)
    return _Answer(verdict.policy.ref if verdict.policy else None, "")


def _answer(vector: vectors.Vector) -> _Answer:
    case = msgspec.json.decode(vector.input, type=_Input)
    return _propagate(case) if case.op == "propagate" else _preempt(case)


_CASES = vectors.by_feature(vectors.load(_GROUP))


@pytest.mark.parametrize("cases", _CASES.values(), ids=_CASES)
def test_claims_equal_the_recorded_answers(cases: list[vectors.Vector]) -> None:
    vectors.assert_accepted(cases, _answer)
