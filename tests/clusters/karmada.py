"""A real Karmada as local processes, with real member clusters whose nodes kwok simulates.

It has what places workloads and carries them to members: the aggregated API server, webhooks, controllers, scheduler.
"""

import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import httpx
import yaml

from tests.brokers.processes import free_ports
from tests.clusters import certificates, programs
from tests.clusters.processes import READY_S, Cluster, ClusterError, LocalCluster

_FRONT_PROXY: Final = "front-proxy-client"
_SYSTEM: Final = "karmada-system"
_FEATURES: Final = "--feature-gates=AllAlpha=true,AllBeta=true,SchedulingOvercommitProtection=false"
"""All but one: the scheduler would count what it placed a moment ago by a memory of its own, which no API shows."""

_CONTROLLERS: Final = (
    "namespace,garbagecollector,serviceaccount-token,ttl-after-finished,bootstrapsigner,tokencleaner,"
    "csrcleaner,csrsigning,clusterrole-aggregation"
)
_CLUSTERS_API: Final = "v1alpha1.cluster.karmada.io"
_AUTHORITY: Final = "{{caBundle}}"
_WEBHOOKS_URL: Final = "https://karmada-webhook.karmada-system.svc:443"


class Karmada(Cluster):
    """A control plane with members ``member1``, ``member2`` and so on, pushed to; with or without a scheduler."""

    def __init__(
        self, members: int = 2, controller_options: Sequence[str] = (), *, schedules: bool = True
    ) -> None:
        super().__init__()
        self._schedules: Final = schedules
        self._controller_options: Final = (
            "--controllers=*,hpaScaleTargetMarker,deploymentReplicasSyncer",
            *controller_options,
        )
        self.members: Final = {f"member{number}": LocalCluster() for number in range(1, members + 1)}
        self._ports = iter(free_ports(8))
        self._programs = Path()

    def start(self) -> None:
        """Start all, and wait until the members are ready. Raises ClusterError, BuildError."""
        self._programs = programs.karmada()
        certificate, key = certificates.client(self.directory, _FRONT_PROXY)
        self._front_proxy[0].write_bytes(certificate)
        self._front_proxy[1].write_bytes(key)
        super().start()
        self.launch(
            programs.directory() / programs.CONTROLLERS,
            [
                *self.controllers_options(),
                f"--cluster-signing-cert-file={self.files.authority}",
                f"--cluster-signing-key-file={self.files.authority_key}",
                f"--controllers={_CONTROLLERS}",
            ],
        )
        self.kubectl("create", "namespace", _SYSTEM)
        crds = self._programs / "module/charts/karmada/_crds/bases"
        self.kubectl("apply", "--server-side", "--recursive", "--filename", str(crds))
        self._serve_clusters()
        self._serve_webhooks()
        self._launch_component(
            programs.KARMADA_CONTROLLERS, ["--leader-elect=false", *self._controller_options]
        )
        if self._schedules:
            self._launch_component(
                programs.KARMADA_SCHEDULER, ["--leader-elect=false", "--enable-scheduler-estimator=false"]
            )
        for name, member in self.members.items():
            member.start()
            self._join(name, member)

    def close(self) -> None:
        """Kill all processes of the control plane and the members, and delete their data."""
        for member in self.members.values():
            member.close()
        super().close()

    def karmadactl(self, *words: str) -> str:
        """Return the output of the administrator's karmadactl. Raises ClusterError."""
        command = [str(self._programs / programs.KARMADACTL), *words, f"--kubeconfig={self.kubeconfig}"]
        ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=READY_S)
        if ended.returncode:
            raise ClusterError(f"karmadactl {words[0]}: {ended.stderr}")
        return ended.stdout

    def api_server_options(self) -> list[str]:
        """Options of an API server that passes requests on to another."""
        certificate, key = self._front_proxy
        return [
            *super().api_server_options(),
            "--enable-bootstrap-token-auth=true",
            "--disable-admission-plugins=StorageObjectInUseProtection,ServiceAccount",
            f"--proxy-client-cert-file={certificate}",
            f"--proxy-client-key-file={key}",
            f"--requestheader-client-ca-file={self.files.authority}",
            f"--requestheader-allowed-names={_FRONT_PROXY}",
            "--requestheader-extra-headers-prefix=X-Remote-Extra-",
            "--requestheader-group-headers=X-Remote-Group",
            "--requestheader-username-headers=X-Remote-User",
        ]

    @property
    def _front_proxy(self) -> tuple[Path, Path]:
        return self.directory / "front-proxy.pem", self.directory / "front-proxy.key"

    def _serve_clusters(self) -> None:
        """Serve ``cluster.karmada.io``, through the API server."""
        port = next(self._ports)
        self._launch(
            programs.AGGREGATED,
            [
                f"--authentication-kubeconfig={self.kubeconfig}",
                f"--authorization-kubeconfig={self.kubeconfig}",
                f"--etcd-servers={self.etcd_url}",
                f"--tls-cert-file={self.files.certificate}",
                f"--tls-private-key-file={self.files.key}",
                "--bind-address=127.0.0.1",
                f"--secure-port={port}",
            ],
        )
        deploy = self._programs / "module/artifacts/deploy"
        text = (deploy / "karmada-aggregated-apiserver-apiservice.yaml").read_text()
        service_of_api, service = yaml.safe_load_all(text.replace(_AUTHORITY, ""))
        # The certificate names the loopback address, and an external name has to be a name.
        service_of_api["spec"] |= {"caBundle": None, "insecureSkipTLSVerify": True}
        service_of_api["spec"]["service"]["port"] = port
        service["spec"] |= {"externalName": "localhost", "ports": [{"port": port}]}
        self._apply([service_of_api, service])
        for name in ("admin-clusterrole-aggregation", "cluster-proxy-admin-rbac"):
            self.kubectl("apply", "--filename", str(deploy / f"{name}.yaml"))
        state = "jsonpath={.status.conditions[?(@.type=='Available')].status}"
        self.wait_for(
            programs.AGGREGATED,
            lambda: self.kubectl("get", "apiservice", _CLUSTERS_API, "--output", state) == "True",
        )

    def _serve_webhooks(self) -> None:
        port = next(self._ports)
        served = self.directory / "webhooks"
        served.mkdir()
        (served / "tls.crt").write_bytes(self.files.certificate.read_bytes())
        (served / "tls.key").write_bytes(self.files.key.read_bytes())
        self._launch_component(
            programs.WEBHOOK,
            [
                "--bind-address=127.0.0.1",
                f"--secure-port={port}",
                f"--cert-dir={served}",
                "--allow-no-execute-taint-policy=true",
            ],
        )
        self.wait_for(programs.WEBHOOK, lambda: _listens(f"https://127.0.0.1:{port}/"))
        authority = certificates.base64_of(self.files.authority.read_bytes())
        text = (self._programs / "module/artifacts/deploy/webhook-configuration.yaml").read_text()
        text = text.replace(_AUTHORITY, authority).replace(_WEBHOOKS_URL, f"https://127.0.0.1:{port}")
        self._apply(list(yaml.safe_load_all(text)))

    def _launch_component(self, program: str, options: Sequence[str]) -> None:
        """Start a program that has metrics and a health endpoint."""
        addresses = [
            f"--{name}-bind-address=127.0.0.1:{next(self._ports)}" for name in ("metrics", "health-probe")
        ]
        self._launch(program, [*addresses, _FEATURES, *options])

    def _launch(self, program: str, options: Sequence[str]) -> None:
        self.launch(self._programs / program, [f"--kubeconfig={self.kubeconfig}", *options])

    def _apply(self, objects: Sequence[Mapping[str, object]]) -> None:
        listed = {"apiVersion": "v1", "kind": "List", "items": objects}
        if not self.kubectl("apply", "--filename", "-", document=listed):
            raise ClusterError(f"cannot apply {json.dumps([manifest['kind'] for manifest in objects])}")

    def _join(self, name: str, member: LocalCluster) -> None:
        self.karmadactl("join", name, f"--cluster-kubeconfig={member.kubeconfig}")
        state = "jsonpath={.status.conditions[?(@.type=='Ready')].status}"
        self.wait_for(
            programs.KARMADA_CONTROLLERS,
            lambda: self.kubectl("get", "cluster", name, "--output", state) == "True",
        )


def _listens(url: str) -> bool:
    try:
        # The certificate is the control plane's own; what is asked is only whether something answers.
        httpx.get(url, verify=False, trust_env=False)  # noqa: S501
    except httpx.TransportError:
        return False
    return True
