"""``tour``: plays the rebalancer's tutorial against a real server, and checks each step's numbers.

Without ``--data`` it starts a server of its own in a temporary directory, and removes both in the end.
"""

import contextlib
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Mapping
from pathlib import Path
from typing import Annotated, Final, cast

from cyclopts import Parameter

from engine.cli import applying, changing, endpoint, failures, listing, results, showing, tour_manifests
from engine.cli.client import Client, Json
from engine.cli.kube_objects import KubeObjects

_START_SECONDS: Final = 20.0
_STEP_SECONDS: Final = 30.0
_STOP_SECONDS: Final = 15.0
_POLL_SECONDS: Final = 0.02
_BAR_CELLS: Final = 10
_BINDING: Final = "bindings/default/foo-deployment"
_TAINT: Final[Json] = {"key": "workload-rebalancer-test", "effect": "NoExecute"}


def tour(
    *, data: Annotated[Path | None, Parameter(help="Data directory of a server to play on.")] = None
) -> int:
    """Play the rebalancer's tutorial step by step."""
    with _server(data) as directory:
        tourist = _Tourist(Client(directory))
        tourist.refuse_if_used()
        try:
            tourist.play()
        finally:
            tourist.clean_up()
    if tourist.wrong:
        showing.say(f"\n{tourist.wrong} of {tourist.checked} checks failed.")
        return failures.FAILED
    showing.say(
        f"\nAll {tourist.checked} checks passed. What was shown stands in the log: try reballast timeline."
    )
    return failures.OK


@contextlib.contextmanager
def _server(data: Path | None) -> Generator[Path]:
    """The directory of a server that runs: the one that is named, or one for the tour alone."""
    if data is not None and _is_served(data):
        yield data
        return
    if data is not None:
        # What a server that was killed left behind is not taken for the one that is started now.
        (data / endpoint.FILE).unlink(missing_ok=True)
    directory = data or Path(tempfile.mkdtemp(prefix="reballast-tour-"))
    started_s = time.monotonic()
    process = subprocess.Popen(  # noqa: S603  # our own program, by the interpreter that runs this one
        [sys.executable, "-m", "engine.cli", "up", "--data", str(directory)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        while not (directory / endpoint.FILE).exists():
            if process.poll() is not None or time.monotonic() - started_s > _START_SECONDS:
                raise failures.Failure(
                    f"no server started in {directory}", f"see why: reballast up --data {directory}"
                )
            time.sleep(_POLL_SECONDS)
        showing.say(
            f"A server with three simulated clusters, ready after {time.monotonic() - started_s:.1f} s."
        )
        yield directory
    finally:
        process.terminate()
        process.wait(_STOP_SECONDS)
        if data is None:
            shutil.rmtree(directory, ignore_errors=True)


def _is_served(directory: Path) -> bool:
    """Whether a server of the directory answers."""
    if not (directory / endpoint.FILE).exists():
        return False
    try:
        Client(directory).get("lag")
    except failures.Failure:
        return False
    return True


class _Tourist:
    """Plays the steps; counts what was checked and what was not as the tutorial says."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._objects = KubeObjects(client)
        self.checked = 0
        self.wrong = 0

    def refuse_if_used(self) -> None:
        """Raises Failure where the tutorial's objects are there already: the tour would take them away."""
        if self._client.find(_BINDING) is not None:
            raise failures.Failure(
                "default/foo is there already", "play on another server: reballast tour (without --data)"
            )

    def play(self) -> None:
        """All steps, in the tutorial's order."""
        _title("Step 1: create a Deployment with 3 replicas, and a policy that divides them by free room")
        self._apply(tour_manifests.DEPLOYMENT)
        self._expect("2 replicas run in member1, 1 in member2", {"member1": 2, "member2": 1})

        _title("Step 2: a NoExecute taint on member1 stands for its failure")
        self._retaint("tainted", [_TAINT], [])
        self._expect("all replicas run in member2", {"member2": 3})
        self._retaint("untainted", [], [_TAINT])
        self._expect("the taint is gone, and nothing moves back", {"member2": 3})

        _title("Step 3: a WorkloadRebalancer asks for a fresh decision")
        self._apply(tour_manifests.REBALANCER)

        _title("Step 4: its status")
        self._check("deployment/foo was rescheduled: Successful", self._is_rebalanced)

        _title("Step 5: its effect")
        self._expect("2 replicas are back in member1, 1 stays in member2", {"member1": 2, "member2": 1})
        self._tell_why()

        _title("Step 6: let it clean up after itself")
        self._apply(tour_manifests.REBALANCER_WITH_TTL)
        self._check("generation 2 is finished, to be deleted 300 s later", lambda: self._is_rebalanced(2))
        self._apply(tour_manifests.REBALANCER_WITH_TTL.replace("300", "0"))
        self._check("with 0 s instead, it is gone at once", self._is_gone)
        proof = self._client.get("verify")
        self._check(
            "the log proves: every step computed again gives the same bytes", lambda: not _findings(proof)
        )

    def clean_up(self) -> None:
        """Takes away what the tour made."""
        made = (tour_manifests.DEPLOYMENT + tour_manifests.REBALANCER).encode()
        applying.delete_files(self._objects, [("tour", made)], "default")

    def _apply(self, manifest: str) -> None:
        for result in applying.apply_files(self._objects, [("tour", manifest.encode())], "default"):
            self._tell(result)

    def _retaint(self, action: str, added: list[Json], removed: list[Json]) -> None:
        self._tell(
            changing.change_taints(
                self._objects,
                "member1",
                action,
                lambda taints: changing.retainted("member1", taints, added, removed),
            )
        )

    def _tell(self, result: Json) -> None:
        if result.get("problems"):
            raise failures.Failure(str(result["problems"]))
        showing.say(f"  {results.named(result)} {result.get('action')}")

    def _expect(self, words: str, wanted: Mapping[str, int]) -> None:
        """Waits until the replicas run as wanted, and shows them."""
        self._check(words, lambda: self._running() == wanted)
        for cluster in ("member1", "member2", "member3"):
            count = self._running().get(cluster, 0)
            showing.say(f"      {cluster} {'█' * count}{'·' * (_BAR_CELLS - count)} {count}")

    def _check(self, words: str, holds: Callable[[], bool]) -> None:
        started_s = time.monotonic()
        while not (held := holds()) and time.monotonic() - started_s < _STEP_SECONDS:
            time.sleep(_POLL_SECONDS)
        self.checked += 1
        self.wrong += not held
        took_ms = (time.monotonic() - started_s) * 1000
        showing.say(f"  {'ok' if held else 'WRONG'}  {words} ({took_ms:.0f} ms)")

    def _running(self) -> dict[str, int]:
        """Ready replicas by cluster, as the members report them, of the clusters that run any."""
        binding = self._client.find(_BINDING) or {}
        reports = listing.items(listing.part(binding, "status").get("aggregatedStatus"))
        scheduled = {
            str(each["name"]) for each in listing.items(listing.part(binding, "spec").get("clusters"))
        }
        ready = {
            str(each["clusterName"]): int(str(listing.part(each, "status").get("readyReplicas") or 0))
            for each in reports
        }
        return {name: count for name, count in ready.items() if count or name in scheduled}

    def _is_rebalanced(self, generation: int = 1) -> bool:
        status = listing.part(self._client.find("rebalancers/demo"), "status")
        seen = listing.items(status.get("observedWorkloads"))
        done = [each.get("result") for each in seen] == ["Successful"]
        return done and "finishTime" in status and status.get("observedGeneration") == generation

    def _is_gone(self) -> bool:
        return self._client.find("rebalancers/demo") is None

    def _tell_why(self) -> None:
        why = self._client.find("explain/default/foo-deployment") or {}
        basis = listing.part(why, "basis")
        showing.say(
            f"  why: {why.get('trigger')}, decided {why.get('mode')} in step {basis.get('step')} of shard "
            f"{basis.get('shard')}"
        )
        groups = listing.items(listing.part(why, "explanation").get("groups"))
        for cluster in listing.items(groups[0].get("clusters")) if groups else []:
            failed = [str(reason) for reason in _list(cluster.get("failed"))]
            words = (
                "; ".join(failed) or f"room for {cluster.get('available')}, gets {cluster.get('replicas')}"
            )
            showing.say(f"      {cluster.get('name')}: {words}")


def _list(value: object) -> list[object]:
    return cast("list[object]", value) if isinstance(value, list) else []


def _findings(proof: object) -> list[Json]:
    return listing.items(listing.part(proof).get("findings"))


def _title(text: str) -> None:
    showing.say(f"\n{text}")
