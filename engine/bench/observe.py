"""Benchmark of ``observe`` and ``scheduler``: changes observed per second, time from a binding to its decision.

Three processes: an in-memory Kubernetes API, the tested command, and this one, which only waits. The baseline reads
the same changes from the same API and does nothing with them.
"""

import asyncio
import re
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import aclosing, contextmanager
from pathlib import Path
from typing import Final

import httpx
import msgspec
from msgspec import Struct

from engine.agent.kubeconfigs import Access
from engine.agent.member_api import MemberApi
from engine.bench import karmada_api, processes, runs
from engine.bench.runs import Figures, Progress
from engine.domain.bindings import REBALLAST_SCHEDULER
from engine.identity import kubeconfig
from engine.identity.endpoint import Endpoint
from engine.process import log_locations
from events import codec, observations, times, topics
from events.validation import known_kinds

PACED_PER_S: Final = 500
DECIDED_PER_S: Final = 20
_BURST: Final = 2_000
_ACT_S: Final = 3_600
_POLL_S: Final = 0.02
_OTHER: Final = "default-scheduler"
_CHANGES: Final = re.compile(r"^reballast_observer_changes_total (\S+)", re.MULTILINE)
_BINDING: Final = next(kind for kind in known_kinds.DERIVED if kind.kind == "ResourceBinding")


class _Metadata(Struct):
    annotations: dict[str, str] = {}


class _Head(Struct):
    metadata: _Metadata


class _Placed(Struct):
    placed_s: list[float]
    writes: int


class Sizes(Struct, frozen=True, kw_only=True):
    """Numbers of changes to observe, and of bindings to decide on, that are sent at a fixed rate."""

    changes: int = 2_500
    decided: int = 300


_USUAL: Final = Sizes()
_HEAD: Final = msgspec.json.Decoder(_Head)


class _Command:
    """A running ``reballast observe`` or ``reballast scheduler``, and its endpoint."""

    def __init__(self, pid: int, endpoint: Endpoint) -> None:
        self.pid = pid
        self._endpoint = endpoint

    def appended(self) -> int:
        """The number of records that the command has appended."""
        headers = {"authorization": f"Bearer {self._endpoint.token}"}
        text = httpx.get(f"{self._endpoint.url}/metrics", headers=headers, trust_env=False, timeout=60).text
        match = _CHANGES.search(text)
        return int(float(match[1])) if match else 0

    def wait(self, count: int) -> None:
        """Wait until the command has appended ``count`` records."""
        while self.appended() < count:
            time.sleep(_POLL_S)


def run(bindings: int, progress: Progress = lambda _: None, sizes: Sizes = _USUAL) -> Figures:
    """Run the benchmark in a temporary directory; return the figures."""
    with runs.directory() as directory:
        figures: Figures = {"bindings": bindings}
        with _api() as url:
            figures |= _observed(url, directory, bindings, progress, sizes.changes)
        with _api() as url:
            figures |= _scheduled(url, directory, bindings, progress, sizes.decided)
        return figures


def _observed(url: str, directory: Path, bindings: int, progress: Progress, paced: int) -> Figures:
    figures: Figures = {}
    with _command("observe", url, directory / "observe") as command:
        empty_mb = processes.resident_of(command.pid)
        progress(f"{bindings} changes at once, observed")
        start_s, used_s = time.perf_counter(), processes.cpu_s(command.pid)
        _ask(url, "bind", bindings, 0, scheduler=_OTHER)
        command.wait(karmada_api.CLUSTERS + bindings)
        took_s = time.perf_counter() - start_s
        observed_per_s = round(bindings / took_s)
        figures["observed_per_s"] = observed_per_s
        figures["observed_cpu_us"] = round((processes.cpu_s(command.pid) - used_s) / bindings * 1e6)
        figures["kb_per_binding"] = round(
            (processes.resident_of(command.pid) - empty_mb) * 1024 / bindings, 1
        )
        progress(f"changes at {PACED_PER_S} a second")
        before = command.appended()
        _ask(url, "touch", paced, PACED_PER_S)
        command.wait(before + paced)
    log_location = log_locations.parse(str(directory / "observe" / "data"))
    delays_s = asyncio.run(_delays_s(log_location, paced))
    figures |= runs.delays("lag_", delays_s)
    progress("a restart")
    start_s = time.perf_counter()
    with _command("observe", url, directory / "observe") as command:
        _ask(url, "touch", 1, 0)
        command.wait(1)
        figures["restart_s"] = round(time.perf_counter() - start_s, 1)
    progress("the same changes, only read: the baseline")
    start_s = time.perf_counter()
    asyncio.run(_read(url, bindings))
    figures["baseline"] = "the same watch, each line decoded and dropped"
    baseline_per_s = round(bindings / (time.perf_counter() - start_s))
    figures["baseline_per_s"] = baseline_per_s
    figures["baseline_to_observed"] = round(baseline_per_s / max(observed_per_s, 1), 1)
    return figures


def _scheduled(url: str, directory: Path, bindings: int, progress: Progress, paced: int) -> Figures:
    figures: Figures = {}
    count = min(bindings, _BURST)
    with _command("scheduler", url, directory / "schedule", "--writes-per-second", "100000") as command:
        progress(f"decisions on bindings at {DECIDED_PER_S} a second")
        # The first binding also waits until the scheduler holds the Lease, so it is not measured.
        _ask(url, "bind", 1, 0, scheduler=REBALLAST_SCHEDULER)
        _placed(url, 2)
        _ask(url, "bind", paced, DECIDED_PER_S, scheduler=REBALLAST_SCHEDULER)
        placed = _placed(url, 2 * (1 + paced))
        figures |= runs.delays("decided_", placed.placed_s[1:])
        progress(f"decisions on {count} bindings at once")
        start_s, used_s = time.perf_counter(), processes.cpu_s(command.pid)
        _ask(url, "bind", count, 0, scheduler=REBALLAST_SCHEDULER)
        placed = _placed(url, 2 * (1 + paced + count))
        figures["decided_per_s"] = round(count / (time.perf_counter() - start_s))
        figures["decided_cpu_us"] = round((processes.cpu_s(command.pid) - used_s) / count * 1e6)
        figures["writes_per_binding"] = placed.writes / (1 + paced + count)
    return figures


@contextmanager
def _api() -> Generator[str]:
    """Run the in-memory API; yields its URL."""
    command = [sys.executable, "-m", "engine.bench.karmada_api"]
    with subprocess.Popen[bytes](command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            yield (process.stdout.readline() if process.stdout else b"").decode().strip()
        finally:
            process.kill()


@contextmanager
def _command(name: str, url: str, directory: Path, *options: str) -> Generator[_Command]:
    """Run ``reballast`` with this command on the API until the block ends."""
    directory.mkdir(exist_ok=True)
    config = kubeconfig.write(directory, url, "bench", b"", [])
    data = directory / "data"
    words = ("engine.cli", name, "--kubeconfig", str(config), "--data", str(data), *options)
    with processes.serving(data, *words) as (pid, endpoint):
        yield _Command(pid, endpoint)


def _ask(url: str, act: str, count: int, per_second: float, **more: str) -> None:
    query = {"count": count, "per_second": per_second, **more}
    httpx.post(f"{url}/bench/{act}", params=query, trust_env=False, timeout=_ACT_S).raise_for_status()


def _placed(url: str, writes: int) -> _Placed:
    """Wait until bindings were written this many times; return the times of the writes."""
    while int(httpx.get(f"{url}/bench/written", trust_env=False, timeout=60).text) < writes:
        time.sleep(_POLL_S)
    answer = httpx.get(f"{url}/bench/figures", trust_env=False, timeout=60)
    return msgspec.json.decode(answer.content, type=_Placed)


async def _delays_s(location: log_locations.LogLocation, count: int) -> list[float]:
    """Seconds from a change to its record, for the newest ``count`` observed changes."""
    delays: list[float] = []
    async with log_locations.opened(location) as log:
        end = log.ends()[topics.OBSERVATIONS, 0]
        for record in await log.read(topics.OBSERVATIONS, 0, end - count, count):
            decoded = codec.decode(record)
            if not isinstance(decoded, codec.Decoded) or not isinstance(
                decoded.data, observations.ObjectObserved
            ):
                continue
            sent = _HEAD.decode(decoded.data.manifest).metadata.annotations.get(karmada_api.SENT)
            if sent is not None:
                delays.append(times.from_text(decoded.envelope.time) / times.SECOND_MS - float(sent))
    return delays


async def _read(url: str, count: int) -> None:
    async with aclosing(MemberApi(Access(server=url))) as api:
        seen = 0
        async for _ in api.watch(_BINDING, "0"):
            seen += 1
            if seen == count:
                return
