"""Kinds of other projects, for which both control planes have built-in interpreters: definitions and random specs.

Kinds with several components are left out: Karmada may estimate the capacity for them, an alpha feature.
"""

import random
from collections.abc import Callable
from typing import Final

from events.json_values import Json, object_at, objects_at
from tests.builders.manifests import Kind, manifest
from tests.clusters.comparison.pods import pod_template

_SCHEMA: Final[Json] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
DEFINITION: Final = ("apiextensions.k8s.io/v1", "CustomResourceDefinition")
_COUNTS: Final = (0, 1, 2, 3, 7)


def _pods(rng: random.Random) -> Json:
    return {"template": pod_template(rng)}


def _notebook(rng: random.Random) -> Json:
    """Return a Notebook without dependencies, which Karmada ignores."""
    template = pod_template(rng)
    pod = object_at(template, "spec")
    kept = {name: part for name, part in pod.items() if name not in {"volumes", "serviceAccountName"}}
    return {"template": {**template, "spec": kept}}


def _clone_set(rng: random.Random) -> Json:
    return {"replicas": rng.choice(_COUNTS), **_pods(rng)}


def _broadcast_job(rng: random.Random) -> Json:
    return {"parallelism": rng.choice(_COUNTS), **_pods(rng)}


def _cron_job(rng: random.Random) -> Json:
    kind = rng.choice(("jobTemplate", "broadcastJobTemplate"))
    return {"schedule": "0 3 * * *", "template": {kind: {"spec": _pods(rng)}}}


def _workflow(rng: random.Random) -> Json:
    """Return a Workflow without Secrets as volumes, which Karmada does not propagate."""
    pod = object_at(pod_template(rng), "spec")
    fields = {name: pod[name] for name in ("volumes", "serviceAccountName", "nodeSelector") if name in pod}
    if any("secret" in volume for volume in objects_at(fields, "volumes")):
        del fields["volumes"]
    return {"entrypoint": "main", "parallelism": rng.choice(_COUNTS), **fields}


def _release(rng: random.Random) -> Json:
    values = [
        {"kind": kind, "name": f"{kind.lower()}0"} for kind in ("ConfigMap", "Secret") if rng.random() < 0.5
    ]
    account: Json = {"serviceAccountName": "serviceaccount0"} if rng.random() < 0.3 else {}
    return {"interval": "5m", "chart": {"spec": {"chart": "web"}}, "valuesFrom": values, **account}


def _repository(rng: random.Random) -> Json:
    secret: Json = {"secretRef": {"name": "secret0"}} if rng.random() < 0.5 else {}
    return {"interval": "5m", "url": "https://git.example/web", **secret}


SPECS: Final[dict[Kind, Callable[[random.Random], Json]]] = {
    ("apps.kruise.io/v1alpha1", "CloneSet"): _clone_set,
    ("apps.kruise.io/v1alpha1", "BroadcastJob"): _broadcast_job,
    ("apps.kruise.io/v1alpha1", "AdvancedCronJob"): _cron_job,
    ("argoproj.io/v1alpha1", "Workflow"): _workflow,
    ("helm.toolkit.fluxcd.io/v2beta1", "HelmRelease"): _release,
    ("source.toolkit.fluxcd.io/v1", "GitRepository"): _repository,
    ("kubeflow.org/v1", "Notebook"): _notebook,
}


def by_api_version() -> dict[str, list[str]]:
    """Return the kinds by API version."""
    kinds: dict[str, list[str]] = {}
    for api_version, kind in SPECS:
        kinds.setdefault(api_version, []).append(kind)
    return kinds


def definitions() -> list[Json]:
    """Return the CustomResourceDefinitions of all kinds, which accept any fields."""
    return [definition(*kind) for kind in SPECS]


def definition(api_version: str, kind: str) -> Json:
    """Return the CustomResourceDefinition of a kind that accepts any fields."""
    group, _, version = api_version.partition("/")
    singular = kind.lower()
    plural = f"{singular.removesuffix('y')}ies" if singular.endswith("y") else f"{singular}s"
    served: Json = {
        "name": version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": _SCHEMA},
        "subresources": {"status": {}},
    }
    names = {"plural": plural, "singular": singular, "kind": kind, "listKind": f"{kind}List"}
    spec: Json = {"group": group, "names": names, "scope": "Namespaced", "versions": [served]}
    return manifest(*DEFINITION, f"{plural}.{group}", spec=spec)
