"""Values that several samples share."""

from typing import Final

import msgspec

from events import shapes

AT_MS: Final = 1_716_630_591_120
"""2024-05-25T09:49:51.120Z."""
TEMPLATE: Final = shapes.WorkloadRef(
    api_version="apps/v1", kind="Deployment", name="foo", namespace="default"
)
DEPENDENCY: Final = shapes.WorkloadRef(
    api_version="v1", kind="ConfigMap", name="settings", namespace="default"
)
POLICY: Final = shapes.PolicyRef(kind="PropagationPolicy", name="nginx-propagation", namespace="default")
READING: Final = shapes.Reading(
    values=("{.jobStatus.jobID}",),
    health=shapes.HealthRule(path=".jobStatus.state", values=("RUNNING",)),
    retained=("spec.paused",),
)
OVERRIDE: Final = shapes.OverrideRef(
    kind="OverridePolicy", name="eu", namespace="default", offset=4, digest="7d793037a0760186", rules=(0, 2)
)
PAIR: Final = ("member1", "member2")
KEY: Final = "default/foo-deployment"
OCCUPANT: Final = shapes.Occupant(
    key="default/bar-deployment", cluster="member1", priority=-5, replicas=3, requests={"cpu": "250m"}
)
UID: Final = "1c2f8a52-97bd-4b5e-8d0a-5f3c1e7a9b46"
DIGEST: Final = "5d41402abc4b2a76"


def raw_json(text: str) -> msgspec.Raw:
    return msgspec.Raw(text.encode())


OWNER: Final = msgspec.json.decode(
    b'{"manager":"kubectl","operation":"Update","apiVersion":"v1","fieldsV1":{},"time":"t","subresource":"status"}',
    type=shapes.FieldsOwner,
)
