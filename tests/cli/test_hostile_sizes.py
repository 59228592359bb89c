"""Valid objects of hostile sizes: none of them holds the event loop, and the server stops when it is told to."""

import contextlib
import json
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Self

import httpx
import pytest

from tests.cli.servers import running

pytestmark = pytest.mark.slow

Json = dict[str, object]

TEMPLATES: Final = 60
LAG_S_MAX: Final = 1.0
"""On a machine with nothing else to do; former releases were silent for minutes."""

LAG_FACTOR_MAX: Final = 5
"""Of the longest delay under an ordinary load in the same run: other processes may take the cores."""

_POLICIES: Final = "/apis/policy.karmada.io/v1alpha1/namespaces/default/propagationpolicies"
_OVERRIDES: Final = "/apis/policy.karmada.io/v1alpha1/namespaces/default/overridepolicies"
_DEPLOYMENTS: Final = "/apis/apps/v1/namespaces/default/deployments"
_CONFIG_MAPS: Final = "/api/v1/namespaces/default/configmaps"
_REBALANCERS: Final = "/apis/apps.karmada.io/v1alpha1/workloadrebalancers"
_DEPLOYMENT: Final[Json] = {"apiVersion": "apps/v1", "kind": "Deployment"}
_LAG: Final = re.compile(r"^reballast_event_loop_lag_max_seconds ([0-9.e+-]+)$", re.MULTILINE)


class Server:
    """A running server, asked as an administrator."""

    def __init__(self, directory: Path) -> None:
        said = json.loads((directory / "endpoint.json").read_text())
        headers = {"Authorization": f"Bearer {said['token']}"}
        kube_url = said.get("kubeUrl") or said["kube_url"]
        self._kube = httpx.Client(base_url=kube_url, verify=False, headers=headers, timeout=60)  # noqa: S501
        self._gateway = httpx.Client(base_url=said["url"], headers=headers, timeout=60)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._kube.close()
        self._gateway.close()

    def write(self, method: str, path: str, value: Json | None = None) -> httpx.Response:
        """Writes, and waits for the answer."""
        return self._kube.request(method, path, json=value)

    def longest_lag_s(self) -> float:
        """The longest delay of the event loop so far."""
        time.sleep(0.1)
        found = _LAG.search(self._gateway.get("/metrics").text)
        assert found is not None
        return float(found[1])


def deployment(name: str, labels: Json, volumes: list[Json]) -> Json:
    pod: Json = {"containers": [{"name": "main", "image": "nginx"}], "volumes": volumes}
    spec: Json = {
        "replicas": 1,
        "selector": {"matchLabels": {"app": "x"}},
        "template": {"metadata": {"labels": {"app": "x"}}, "spec": pod},
    }
    return {**_DEPLOYMENT, "metadata": {"name": name, "labels": labels}, "spec": spec}


def policy(name: str, selectors: list[Json], placement: Json | None = None, **spec: object) -> Json:
    return {
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": "PropagationPolicy",
        "metadata": {"name": name},
        "spec": {"resourceSelectors": selectors, "placement": placement or {}, **spec},
    }


def labelled(count: int) -> list[Json]:
    return [
        {**_DEPLOYMENT, "labelSelector": {"matchLabels": {"group": f"g{index}"}}} for index in range(count)
    ]


def hostile_writes() -> Iterator[tuple[str, str, Json | None]]:
    """As large as they are taken, or larger."""
    yield "POST", _POLICIES, policy("selectors", labelled(1_000))
    yield "DELETE", f"{_POLICIES}/selectors", None
    yield "POST", _POLICIES, policy("too-many", labelled(8_000))
    conditions: list[Json] = [
        {"key": f"none{index}", "operator": "NotIn", "values": ["a", "b"]} for index in range(1_000)
    ]
    yield (
        "POST",
        _POLICIES,
        policy("conditions", [{**_DEPLOYMENT, "labelSelector": {"matchExpressions": conditions}}]),
    )
    terms = [{"affinityName": f"a{index}", "clusterNames": ["member1"]} for index in range(1_000)]
    yield "POST", _POLICIES, policy("affinities", [_DEPLOYMENT], {"clusterAffinities": terms})
    yield "POST", _POLICIES, policy("all", [_DEPLOYMENT], propagateDeps=True)
    wide: Json = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "wide"}}
    yield "POST", _CONFIG_MAPS, {**wide, "data": {f"key{index}": "x" for index in range(20_000)}}
    volumes: list[Json] = [
        {"name": f"v{index}", "configMap": {"name": f"c{index}"}} for index in range(2_000)
    ]
    yield "POST", _DEPLOYMENTS, deployment("needy", {}, volumes)
    yield "POST", _DEPLOYMENTS, deployment("labelled", {f"l{index}": "x" for index in range(2_000)}, [])
    yield (
        "POST",
        _REBALANCERS,
        {
            "apiVersion": "apps.karmada.io/v1alpha1",
            "kind": "WorkloadRebalancer",
            "metadata": {"name": "all"},
            "spec": {
                "workloads": [
                    {**_DEPLOYMENT, "name": f"web{index}", "namespace": "default"} for index in range(4_000)
                ]
            },
        },
    )
    for number in range(20):
        marks: Json = {"labelsOverrider": [{"operator": "add", "value": {f"o{number}": "x"}}]}
        yield (
            "POST",
            _OVERRIDES,
            {
                "apiVersion": "policy.karmada.io/v1alpha1",
                "kind": "OverridePolicy",
                "metadata": {"name": f"o{number}"},
                "spec": {"overrideRules": [{"overriders": marks}]},
            },
        )


def write_if_it_is_there(server: Server) -> None:
    with contextlib.suppress(httpx.HTTPError):
        server.write("POST", _POLICIES, policy("more", labelled(1_000)))


def test_no_size_of_an_object_holds_the_event_loop_or_keeps_the_server_from_stopping(tmp_path: Path) -> None:
    with running(tmp_path) as process, Server(tmp_path) as server:
        for index in range(TEMPLATES):
            labels: Json = {"group": f"g{index}"}
            assert server.write("POST", _DEPLOYMENTS, deployment(f"web{index}", labels, [])).is_success
        usual_s = server.longest_lag_s()

        lags_s: dict[str, float] = {}
        refused: list[str] = []
        for method, path, value in hostile_writes():
            answer = server.write(method, path, value)
            assert answer.status_code < 500
            if answer.is_client_error:
                refused += [each["field"] for each in answer.json()["details"]["causes"]]
            lags_s[f"{method} {path} {answer.request.content[:80]!r}"] = server.longest_lag_s()

        assert refused == ["spec.resourceSelectors"]
        assert max(lags_s.values()) <= max(LAG_S_MAX, LAG_FACTOR_MAX * usual_s), lags_s

        # It is told to stop while it works on one more, which may or may not be answered.
        last = threading.Thread(target=write_if_it_is_there, args=(server,))
        last.start()
        process.terminate()
        assert process.wait(15) == 0
        last.join()
