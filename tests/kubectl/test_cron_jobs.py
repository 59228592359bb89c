"""CronJobs in members: Jobs start, and the control plane shows what runs."""

from tests.kubectl.commands import Kubectl

CRON_JOB = """
apiVersion: batch/v1
kind: CronJob
metadata: {name: tick, annotations: {simulation.reballast.io/run-seconds: "45"}}
spec:
  schedule: "* * * * *"
  jobTemplate:
    metadata: {labels: {app: tick}}
    spec:
      template:
        spec: {restartPolicy: Never, containers: [{name: main, image: busybox}]}
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: tick}
spec:
  resourceSelectors: [{apiVersion: batch/v1, kind: CronJob}]
  placement: {clusterAffinity: {clusterNames: [member1, member2]}}
"""


def test_cron_job_starts_jobs_in_its_members(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=CRON_JOB)
    member = kubectl.on("member1")
    kubectl.until_true(
        lambda: "tick-" in member("get", "cj", "tick", "-o", "jsonpath={.status.active[*].name}", code=None),
        lambda: member("get", "cj", "tick", "-o", "yaml", code=None),
    )
    name = member("get", "cj", "tick", "-o", "jsonpath={.status.active[0].name}")
    assert (
        member("get", "job", name, "-o", "jsonpath={.metadata.ownerReferences[0].name} {.status.active}")
        == "tick 1"
    )
    kubectl.until_true(
        lambda: kubectl("get", "cj", "tick", "-o", "jsonpath={.status.active[*].name}") == f"{name} {name}",
        lambda: kubectl("get", "cj", "tick", "-o", "yaml"),
    )
    assert kubectl("get", "cj", "tick", "-o", "jsonpath={.status.lastScheduleTime}").endswith(":00Z")
    kubectl("delete", "cj/tick", "pp/tick")
