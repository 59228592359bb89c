"""Samples of the topic ``observations``."""

from typing import Final

import msgspec

from events import observations, shapes

_CONDITION: Final = observations.ShadowCondition(clusters={"member1": 2}, reason="Success", message="done")
_EVENT: Final = msgspec.Raw(b'{"apiVersion":"v1","kind":"Event","reason":"Queued"}')
SAMPLES: Final[tuple[shapes.Event, ...]] = (
    observations.ObjectObserved(
        manifest=msgspec.Raw(b"{}"),
        kind="Service",
        group="serving.knative.dev",
        name="foo",
        namespace="default",
        version=41,
        skipping=True,
    ),
    observations.ObjectVanished(
        kind="Service", group="serving.knative.dev", name="foo", namespace="default", version=42
    ),
    observations.ControlPlaneRestored(seen=4900, version=3100),
    observations.DecisionCompared(
        kind="ResourceBinding",
        name="foo-deployment",
        namespace="default",
        version=43,
        basis=41,
        verdict="race",
        why="decided with the clusters of 39",
        observed=_CONDITION,
        computed=observations.ShadowCondition(clusters={"member2": 2}, reason="Success", message="done"),
        reasons=(
            observations.ShadowReason(
                cluster="member1", failed=("cluster(s) had untolerated taint {a:NoSchedule}",)
            ),
            observations.ShadowReason(cluster="member2", allocatable=7, weight=7, kept=1),
        ),
    ),
    observations.DecisionMade(
        kind="ResourceBinding",
        name="foo-deployment",
        namespace="default",
        uid="5d1f0d62-5b0c-4d8d-8f2f-3b0c6a8a3c11",
        generation=1,
        version=41,
        trigger="RescheduleTriggered",
        fresh=True,
        clusters={"member1": 2},
        places=True,
        applied="{}",
        affinity="primary",
        status="True",
        reason="Success",
        message="Binding has been scheduled successfully.",
        time="2024-05-25T09:49:51Z",
    ),
    observations.KubernetesEventWritten(name="foo.1", namespace="default", manifest=_EVENT),
    observations.KubernetesEventDeleted(name="foo.1", namespace="default", manifest=_EVENT),
)
