"""``tour``: run the rebalancer tutorial on a real server and check the numbers of each step.

Without ``--data`` it starts a private server in a temporary directory and removes both afterwards.
"""

import contextlib
import os
import shlex
import shutil
import tempfile
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Final, NamedTuple

from cyclopts import Parameter
from msgspec import Struct

from engine.cli import (
    apply,
    failures,
    next_commands,
    options,
    output,
    private_server,
    server_location,
    server_reads,
    set_properties,
)
from engine.cli.client import Client
from engine.cli.kube_objects import KubeObjects
from engine.cli.results import Result
from engine.http.query.response_types import Lag
from engine.objects.bindings import Binding
from engine.objects.clusters import Taint
from engine.proof.verification import Report
from engine.reconcilers.explanation_types import Explained
from events.json_values import Json, object_at, objects_at

_STEP_SECONDS: Final = 30.0
_POLL_SECONDS: Final = 0.02
_BAR_CELLS: Final = 10
_BINDING: Final = "bindings/default/foo-deployment"
_MADE: Final = (("deployment", "foo"), ("propagationpolicy", "default-pp"), ("workloadrebalancer", "demo"))
"""Kinds and names of the objects of the tutorial."""

_OTHER_SERVER: Final = "use another server: reballast tour (without --data)"
_TAINTED: Final = "member1"
_TAINT: Final = Taint(key="workload-rebalancer-test", effect="NoExecute")

# The objects of the tutorial.
DEPLOYMENT: Final = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: foo
  labels:
    app: test
spec:
  replicas: 3
  selector:
    matchLabels:
      app: foo
  template:
    metadata:
      labels:
        app: foo
    spec:
      terminationGracePeriodSeconds: 0
      containers:
        - image: nginx
          name: foo
          resources:
            limits:
              cpu: 10m
              memory: 10Mi
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata:
  name: default-pp
spec:
  placement:
    clusterTolerations:
      - effect: NoExecute
        key: workload-rebalancer-test
        operator: Exists
        tolerationSeconds: 0
    clusterAffinity:
      clusterNames:
        - member1
        - member2
    replicaScheduling:
      replicaDivisionPreference: Weighted
      replicaSchedulingType: Divided
      weightPreference:
        dynamicWeight: AvailableReplicas
  resourceSelectors:
    - apiVersion: apps/v1
      kind: Deployment
      name: foo
      namespace: default
"""

REBALANCER: Final = """\
---
apiVersion: apps.karmada.io/v1alpha1
kind: WorkloadRebalancer
metadata:
  name: demo
spec:
  workloads:
    - apiVersion: apps/v1
      kind: Deployment
      name: foo
      namespace: default
"""

REBALANCER_WITH_TTL: Final = REBALANCER.replace("spec:\n", "spec:\n  ttlSecondsAfterFinished: 300\n")


class _Check(Struct, frozen=True, rename="camel"):
    """An expectation of a step, and whether it was met in time."""

    step: str
    check: str
    holds: bool
    took_ms: int


class _TourServer(NamedTuple):
    """The server on which the tour runs, its description, and a hint on how to view the history afterwards.

    Without a directory, the environment names the server.
    """

    directory: Path | None
    words: str
    afterwards: str


def tour(
    *,
    data: Annotated[Path | None, Parameter(help="Data directory of the server to use.")] = None,
    as_json: options.AsJson = False,
) -> int:
    say: Callable[[str], None] = (lambda _line: None) if as_json else output.print_text
    with _tour_server(data) as stage, Client(stage.directory) as client:
        say(stage.words)
        tourist = _Tour(client, say)
        tourist.refuse_if_used()
        try:
            tourist.play()
        finally:
            tourist.clean_up()
    wrong = sum(not check.holds for check in tourist.checks)
    if as_json:
        report = {
            "server": stage.words,
            "checks": tourist.checks,
            "failed": wrong,
            "afterwards": stage.afterwards,
        }
        output.json(report)
        return failures.FAILED if wrong else failures.OK
    if wrong:
        say(f"\n{wrong} of {len(tourist.checks)} checks failed.")
        return failures.FAILED
    say(f"\nAll {len(tourist.checks)} checks passed.")
    # The text ends with a command, so print it unwrapped.
    output.print_line(stage.afterwards)
    return failures.OK


@contextlib.contextmanager
def _tour_server(data: Path | None) -> Generator[_TourServer]:
    """The running server that ``data`` or the environment names, or one started for the tour."""
    if data is None and (server := os.environ.get(server_location.SERVER_VARIABLE)):
        yield _TourServer(
            None,
            f"Running on {server} ({server_location.SERVER_VARIABLE}).",
            _history(),
        )
        return
    if data is not None and is_served(data):
        text = (
            f"Running on the server of {data}; its log keeps the records, the objects are deleted at the end."
        )
        yield _TourServer(data, text, _history())
        return
    with running_server(
        data or Path(tempfile.mkdtemp(prefix="reballast-tour-")), is_kept=data is not None
    ) as stage:
        yield stage


@contextlib.contextmanager
def running_server(directory: Path, *, is_kept: bool) -> Generator[_TourServer]:
    """Start a server for the tour and stop it afterwards; removes its directory unless ``is_kept``."""
    if is_kept:
        # A killed server leaves its endpoint file; remove it, so that it is not mistaken for the new
        # server's.
        with failures.convert(OSError, "use another directory", where=directory):
            (directory / server_location.FILE).unlink(missing_ok=True)
    started_s = time.monotonic()
    try:
        with private_server.running(directory):
            yield _stage_started(directory, time.monotonic() - started_s, is_kept=is_kept)
    finally:
        if not is_kept:
            shutil.rmtree(directory, ignore_errors=True)


def _stage_started(directory: Path, took_s: float, *, is_kept: bool) -> _TourServer:
    ready = f"with three simulated clusters, ready after {took_s:.1f} s"
    if is_kept:
        text = f"Running on a server of {directory} that was started for the tour, {ready}."
        again = next_commands.hint("Start it again", "up")
        return _TourServer(directory, text, f"The server is stopped. {again}\n{_history()}")
    usual = server_location.default_directory()
    text = f"Running on a temporary server {ready}; it is removed at the end."
    if is_served(usual):
        text += f"\nThe server of {usual} is not changed."
        again = f"reballast tour --data {_quoted(usual)}"
        return _TourServer(
            directory,
            text,
            f"The temporary server is removed. To keep the records, use your own server:\n  {again}",
        )
    again = f"reballast up, and then\n  in another terminal: reballast tour --data {_quoted(usual)}"
    return _TourServer(directory, text, f"The temporary server is removed. To keep the records: {again}")


def _history() -> str:
    return next_commands.hint("See what happened", "timeline deploy foo")


def _quoted(directory: Path) -> str:
    return shlex.quote(str(directory))


def is_served(directory: Path) -> bool:
    """Whether a server of the directory responds."""
    if not (directory / server_location.FILE).exists():
        return False
    try:
        with Client(directory) as client:
            client.get("lag", Lag)
    except failures.Failure:
        return False
    return True


class _Tour:
    """Run the steps and record the checks."""

    def __init__(self, client: Client, say: Callable[[str], None]) -> None:
        self._client = client
        self._objects = KubeObjects(client)
        self._print = say
        self._step = ""
        self._is_tainted = False
        self.checks: list[_Check] = []

    def refuse_if_used(self) -> None:
        """Raise Failure if the tour would delete existing objects or evict existing workloads."""
        for kind, name in _MADE:
            target = self._objects.target(kind, "default", name)
            if self._objects.get(target) is not None:
                where = f"{target.namespace}/" if target.namespace else ""
                raise failures.Failure(f"{where}{name} exists already ({target.kind_label})", _OTHER_SERVER)
        evicted = [
            binding.name for binding in server_reads.objects(self._client, "bindings", cluster=_TAINTED)
        ]
        if evicted:
            reason = f"{_TAINTED} runs {evicted[0]}, and the tour would evict all workloads from this cluster"
            raise failures.Failure(reason, _OTHER_SERVER)

    def play(self) -> None:
        """Run all steps, in the tutorial's order."""
        self._title(
            "Step 1: create a Deployment with 3 replicas, and a policy that divides them by free capacity"
        )
        self._apply(DEPLOYMENT)
        self._wait_for_replicas("2 replicas run in member1, 1 in member2", {"member1": 2, "member2": 1})

        self._title("Step 2: a NoExecute taint on member1 simulates its failure")
        self._is_tainted = True
        self._retaint("tainted", [_TAINT], [])
        self._wait_for_replicas("all replicas run in member2", {"member2": 3})
        self._retaint("untainted", [], [_TAINT])
        self._is_tainted = False
        self._wait_for_replicas("the taint is removed, and no replica moves back", {"member2": 3})

        self._title("Step 3: a WorkloadRebalancer requests a decision from scratch")
        self._apply(REBALANCER)

        self._title("Step 4: its status")
        self._check("deployment/foo was rescheduled: Successful", self._is_rebalanced)

        self._title("Step 5: its effect")
        self._wait_for_replicas(
            "2 replicas are back in member1, 1 stays in member2", {"member1": 2, "member2": 1}
        )
        self._print_reasons()

        self._title("Step 6: it is deleted some time after it is finished")
        self._apply(REBALANCER_WITH_TTL)
        self._check("generation 2 is finished, to be deleted 300 s later", lambda: self._is_rebalanced(2))
        self._apply(REBALANCER_WITH_TTL.replace("300", "0"))
        self._check(
            "with 0 s instead, it is deleted at once",
            lambda: self._client.find("rebalancers/demo", Json) is None,
        )
        self._check(
            "the log is proved: every step computed again gives the same bytes",
            lambda: not self._client.verify(Report).findings,
        )

    def clean_up(self) -> None:
        """Delete the tour's objects, and its taint if the tour was interrupted."""
        made = (DEPLOYMENT + REBALANCER).encode()
        if self._is_tainted:
            set_properties.change_taints(
                self._objects,
                _TAINTED,
                "untainted",
                lambda taints: [
                    taint for taint in taints if (taint.key, taint.effect) != (_TAINT.key, _TAINT.effect)
                ],
            )
        list(apply.delete_files(self._objects, [("tour", made)], "default"))

    def _apply(self, manifest: str) -> None:
        for result in apply.apply_files(self._objects, [("tour", manifest.encode())], "default"):
            self._print_result(result)

    def _retaint(self, action: str, added: Sequence[Taint], removed: Sequence[Taint]) -> None:
        self._print_result(
            set_properties.change_taints(
                self._objects,
                _TAINTED,
                action,
                lambda taints: set_properties.retainted(_TAINTED, taints, added, removed),
            )
        )

    def _print_result(self, result: Result) -> None:
        if result.problems:
            raise failures.Failure("; ".join(problem.reason for problem in result.problems))
        self._print(f"  {result.label} {result.action}")

    def _wait_for_replicas(self, text: str, expected: Mapping[str, int]) -> None:
        """Wait until the replicas run as expected, then print them."""
        self._check(text, lambda: self._running() == expected)
        for cluster in ("member1", "member2", "member3"):
            count = self._running().get(cluster, 0)
            self._print(f"      {cluster} {'█' * count}{'·' * (_BAR_CELLS - count)} {count}")

    def _title(self, text: str) -> None:
        self._step = text
        self._print(f"\n{text}")

    def _check(self, text: str, holds: Callable[[], bool]) -> None:
        started_s = time.monotonic()
        while not (is_met := holds()) and time.monotonic() - started_s < _STEP_SECONDS:
            time.sleep(_POLL_SECONDS)
        took_ms = (time.monotonic() - started_s) * 1000
        self.checks.append(_Check(self._step, text, is_met, round(took_ms)))
        self._print(f"  {'ok' if is_met else 'WRONG'}  {text} ({took_ms:.0f} ms)")

    def _running(self) -> dict[str, int]:
        """The reported ready replicas by cluster; clusters with 0 are included only if they are scheduled."""
        binding = self._client.find(_BINDING, Binding) or Binding()
        scheduled = {target.name for target in binding.spec.clusters}
        ready = {
            report.cluster_name: report.count("readyReplicas") or 0
            for report in binding.status.aggregated_status
        }
        return {name: count for name, count in ready.items() if count or name in scheduled}

    def _is_rebalanced(self, generation: int = 1) -> bool:
        status = object_at(self._client.find("rebalancers/demo", Json), "status")
        seen = objects_at(status, "observedWorkloads")
        done = [workload.get("result") for workload in seen] == ["Successful"]
        return done and "finishTime" in status and status.get("observedGeneration") == generation

    def _print_reasons(self) -> None:
        decision = self._client.get("explain/default/foo-deployment", Explained)
        basis = decision.basis
        self._print(
            f"  reason: {decision.trigger}, mode {decision.mode}, in step {basis.step} of shard {basis.shard}"
        )
        groups = decision.explanation.groups if decision.explanation else ()
        for cluster in groups[0].clusters if groups else ():
            failed = "; ".join(cluster.failed)
            text = failed or f"free capacity for {cluster.available} replicas, gets {cluster.replicas}"
            self._print(f"      {cluster.name}: {text}")
