"""Override policies on the command line: applied, reported, explained and verified."""

import json

import httpx

from tests.cli.servers import Shell

OBJECTS = """
apiVersion: policy.karmada.io/v1alpha1
kind: OverridePolicy
metadata: {name: eu}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: over}]
  overrideRules:
  - targetCluster: {clusterNames: [member1]}
    overriders: {plaintext: [{path: /spec/replicas, operator: replace, value: 1}]}
  - targetCluster: {clusterNames: [member2]}
    overriders: {plaintext: [{path: /spec/size, operator: remove}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: over, labels: {app: over}}
spec:
  replicas: 2
  selector: {matchLabels: {app: over}}
  template: {metadata: {labels: {app: over}}, spec: {containers: [{name: c, image: nginx}]}}
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: over}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: over}]
  placement: {clusterAffinity: {clusterNames: [member1, member2]}}
"""
WRONG = """
apiVersion: policy.karmada.io/v1alpha1
kind: OverridePolicy
metadata: {name: wrong}
spec:
  overrideRules:
  - overriders: {imageOverrider: [{component: Name, operator: add}]}
"""


def test_override_policy_is_applied_explained_and_verified(shell: Shell) -> None:
    shell.apply(OBJECTS)
    described = ("describe", "deploy", "over")
    reports = ("Not applied in member2", "Overridden in member1 by OverridePolicy default/eu")
    shell.until_true(lambda: all(report in shell(*described) for report in reports), seconds=60)
    output = shell(*described)
    fault = "OverridePolicy default/eu: plaintext: operation 0: there is no /spec/size"
    assert f"Not applied in member2: Failed to apply all manifests (0/1): {fault}" in output
    shell.until_true(lambda: _ready(shell) == {"member1": 1, "member2": 0}, seconds=60)

    assert "Overrides: member1: OverridePolicy default/eu" in shell("explain", "deploy", "over")
    assert "OverridePolicy" in shell("timeline", "deploy", "over")

    endpoint = json.loads((shell.directory / "endpoint.json").read_bytes())
    headers = {"authorization": f"Bearer {endpoint['token']}"}
    page = httpx.get(
        f"{endpoint['url']}/bindings/default/over-deployment", headers=headers, trust_env=False, timeout=60
    )
    assert "member1: OverridePolicy default/eu; member2: OverridePolicy default/eu" in page.text

    shell("delete", "op", "eu")
    shell.until_true(lambda: _ready(shell) == {"member1": 2, "member2": 2}, seconds=60)
    assert "Overrid" not in shell("explain", "deploy", "over")
    assert "Overridden" not in shell(*described)
    assert "the log is verified, no findings" in shell("log", "verify")


def test_invalid_override_policy_is_refused(shell: Shell) -> None:
    shell.apply(WRONG, code=1)
    assert "spec.overrideRules[0].overriders.imageOverrider[0].component" in shell.errors


def _ready(shell: Shell) -> dict[str, int]:
    binding = json.loads(shell("get", "rb", "over-deployment", "-o", "json"))
    shown = binding.get("status", {}).get("aggregatedStatus", [])
    return {member["clusterName"]: member.get("status", {}).get("readyReplicas", 0) for member in shown}
