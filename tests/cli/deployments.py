"""A Deployment that runs on member1."""

from tests.cli.servers import (
    Shell,
)

APP = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: NAME, labels: {app: NAME}}
spec:
  replicas: 2
  selector: {matchLabels: {app: NAME}}
  template: {metadata: {labels: {app: NAME}}, spec: {containers: [{name: c, image: nginx}]}}
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: NAME}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: NAME}]
  placement: {clusterAffinity: {clusterNames: [member1]}}
"""


def applied(shell: Shell, name: str) -> None:
    """Apply a Deployment that runs on member1."""
    shell.apply(APP.replace("NAME", name))
