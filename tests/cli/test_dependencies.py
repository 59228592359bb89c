"""``propagateDeps`` on the command line: dependencies are listed, explained and verified."""

import json

import httpx

from tests.cli.servers import Shell

OBJECTS = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: along}
spec:
  replicas: 2
  selector: {matchLabels: {app: along}}
  template:
    metadata: {labels: {app: along}}
    spec:
      volumes: [{name: v, configMap: {name: along}}]
      containers: [{name: c, image: nginx}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: along}
data: {a: "1"}
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: along}
spec:
  propagateDeps: true
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: along}]
  placement: {clusterAffinity: {clusterNames: [member1, member2]}}
"""


def test_dependencies_are_listed_explained_and_verified(shell: Shell) -> None:
    shell.apply(OBJECTS)
    shell.until_true(lambda: _is_everywhere(shell), seconds=60)

    (row,) = [line for line in shell("get", "rb", "-o", "wide").splitlines() if "along-configmap" in line]
    assert row.endswith("member1, member2")
    explained = shell("explain", "cm", "along")
    assert "Trigger:   Required\n" in explained
    assert "\nResult:    member1, member2\n" in explained
    assert "Replicas:" not in explained
    assert "Required:  by default/along-deployment: member1, member2" in explained
    assert "Required by: default/along-deployment" in shell("describe", "cm", "along")
    for event in ("dependency-needed", "binding-required"):
        assert event in shell("timeline", "cm", "along")
    assert "dependencies-distributed" in shell("timeline", "deploy", "along")

    endpoint = json.loads((shell.directory / "endpoint.json").read_bytes())
    headers = {"authorization": f"Bearer {endpoint['token']}"}
    page = httpx.get(
        f"{endpoint['url']}/bindings/default/along-configmap", headers=headers, trust_env=False, timeout=60
    )
    assert "required by default/along-deployment" in page.text
    assert "default/along-deployment: member1, member2" in page.text

    shell("delete", "deploy", "along")
    shell.until_true(lambda: "along-configmap" not in shell("get", "rb"), seconds=60)
    assert "the log is verified, no findings" in shell("log", "verify")


def _is_everywhere(shell: Shell) -> bool:
    bindings = json.loads(shell("get", "rb", "-o", "json"))
    conditions = {
        binding["metadata"]["name"]: {
            condition["type"]: condition["status"] for condition in binding["status"]["conditions"]
        }
        for binding in bindings["items"]
    }
    return conditions.get("along-configmap", {}).get("FullyApplied") == "True"
