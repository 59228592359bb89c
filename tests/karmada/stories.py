"""A random story of a Karmada: its users' edits, taints and rebalancers, through kubectl."""

import json
import random
import subprocess
import time
from pathlib import Path
from typing import Any, Final

from tests.builders.manifests import (
    AGGREGATED,
    DUPLICATED,
    DYNAMIC,
    EVEN,
    Json,
    deployment,
    policy,
    rebalancer,
    selector,
)

_MEMBERS: Final = ("member1", "member2")
_TAINT: Final = "maintenance"
_LABEL: Final = "tier"
_TEAM: Final = "team"
_PAUSE_S: Final = 0.4
_WAIT_S: Final = 60.0


class Story:
    """Edits in one control plane, of objects whose names begin with ``prefix``; its policies name ``scheduler``."""

    def __init__(
        self, kubeconfig: Path, seed: int, prefix: str, scheduler: str = "default-scheduler"
    ) -> None:
        self._kubeconfig = kubeconfig
        self._chance = random.Random(seed)  # noqa: S311  # an example, not a secret
        self._prefix = prefix
        self._scheduler = scheduler
        self.names: Final[list[str]] = []

    def play(self, moves: int) -> None:
        """Make so many edits, and remove the taints at the end."""
        for number in range(moves):
            self._move(number)
            time.sleep(self._chance.random() * _PAUSE_S)
        for member in _MEMBERS:
            self._taint(member, [])

    def kubectl(self, *words: str, document: object = None) -> str:
        """Return what kubectl prints; it must not fail."""
        command = ["kubectl", "--kubeconfig", str(self._kubeconfig), *words]
        content = None if document is None else json.dumps(document).encode()
        ended = subprocess.run(command, input=content, capture_output=True, check=False, timeout=_WAIT_S)
        assert ended.returncode == 0, (words, ended.stderr)
        return ended.stdout.decode()

    def bindings(self) -> list[dict[str, Any]]:
        """The bindings of this story's templates."""
        listed = json.loads(self.kubectl("get", "resourcebindings", "-n", "default", "-o", "json"))["items"]
        return [binding for binding in listed if binding["spec"]["resource"]["name"] in self.names]

    def _move(self, number: int) -> None:
        chance = self._chance
        kind = chance.random()
        if kind < 0.4 or not self.names:
            name = f"{self._prefix}-{number}"
            self.names.append(name)
            both = [self._policy(name), self._template(name)]
            self.kubectl("apply", "-f", "-", document={"apiVersion": "v1", "kind": "List", "items": both})
        elif kind < 0.6:
            self.kubectl("scale", "deploy", chance.choice(self.names), f"--replicas={chance.randint(0, 15)}")
        elif kind < 0.7:
            self.kubectl("apply", "-f", "-", document=self._policy(chance.choice(self.names)))
        elif kind < 0.76:
            label = chance.choice([f"{_LABEL}=gold", f"{_LABEL}-"])
            self.kubectl("label", "cluster", chance.choice(_MEMBERS), label, "--overwrite")
        elif kind < 0.84:
            effect = chance.choice(["NoSchedule", "NoExecute", ""])
            self._taint(chance.choice(_MEMBERS), [{"key": _TAINT, "effect": effect}] if effect else [])
        elif kind < 0.92:
            self.kubectl("create", "-f", "-", document=self._rebalancer(number))
        else:
            name = self.names.pop(chance.randrange(len(self.names)))
            self.kubectl("delete", f"deploy/{name}", f"pp/{name}", "--wait=false")

    def _taint(self, member: str, taints: list[Json]) -> None:
        self.kubectl(
            "patch", "cluster", member, "--type=merge", "-p", json.dumps({"spec": {"taints": taints}})
        )

    def _policy(self, name: str) -> Json:
        return policy(
            name, self._placement(), selector(name), namespace="default", schedulerName=self._scheduler
        )

    def _placement(self) -> Json:
        chance = self._chance
        placement: Json = chance.choice(
            [
                {},
                {"clusterAffinity": {"clusterNames": chance.sample(_MEMBERS, chance.choice([1, 2]))}},
                {"clusterAffinity": {"labelSelector": {"matchLabels": {_LABEL: "gold"}}}},
                {
                    "clusterAffinities": [
                        {"affinityName": member, "clusterNames": [member]} for member in _MEMBERS
                    ]
                },
            ]
        )
        if chance.random() < 0.3:
            groups = {"minGroups": 1, "maxGroups": chance.choice([1, 2])}
            placement["spreadConstraints"] = [{"spreadByField": "cluster", **groups}]
        if chance.random() < 0.4:
            affinity = chance.choice(["affinity", "antiAffinity"])
            placement["workloadAffinity"] = {affinity: {"groupByLabelKey": _TEAM}}
        if chance.random() < 0.3:
            placement["clusterTolerations"] = [{"key": _TAINT, "operator": "Exists"}]
        return {**placement, "replicaScheduling": self._division()}

    def _division(self) -> Json:
        static = [
            {"targetCluster": {"clusterNames": [member]}, "weight": self._chance.randint(1, 4)}
            for member in _MEMBERS
        ]
        return self._chance.choice(
            [DUPLICATED, AGGREGATED, DYNAMIC, {**EVEN, "weightPreference": {"staticWeightList": static}}]
        )

    def _template(self, name: str) -> Json:
        chance = self._chance
        requests = {"cpu": chance.choice(["50m", "250m", "1", "3"]), "memory": chance.choice(["64Mi", "1Gi"])}
        # Groups of its own: schedulers see each other's decisions only after they are written.
        team = f"{self._prefix}-{chance.choice('abc')}"
        return deployment(
            name,
            chance.randint(0, 12),
            "default",
            metadata={"labels": {_TEAM: team}},
            requests=requests if chance.random() < 0.7 else None,
        )

    def _rebalancer(self, number: int) -> Json:
        chosen = self._chance.sample(self.names, min(4, len(self.names)))
        return rebalancer(
            f"{self._prefix}-{number}", *(selector(name, namespace="default") for name in chosen)
        )
