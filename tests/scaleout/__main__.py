"""Run more rounds than the tests do: ``python -m tests.scaleout pairs 10000``; ``kill``, ``freeze``, ``broker`` 20.

Two workers and two API replicas run on local brokers under the load of the tests, or without load
(``--idle``). The log and the views are verified at the end.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path

from tests.brokers.processes import LocalBrokers
from tests.scaleout import pairs
from tests.scaleout.installation import Installation, installed


async def _pairs(running: Installation, figures: pairs.Figures, number: int, writers: int) -> None:
    replicas = [pairs.ReplicaClients(api) for api in running.apis]
    try:
        await pairs.play(replicas, figures, number, writers)
    finally:
        for replica in replicas:
            await replica.close()


async def _brokers(running: Installation, figures: pairs.Figures, brokers: LocalBrokers, rounds: int) -> None:
    """Kill one broker after the other and measure writes; each waits for its partition's new leader."""
    replicas = [pairs.ReplicaClients(api) for api in running.apis]
    try:
        for index in range(rounds):
            number = 1 + index % 3
            await asyncio.to_thread(brokers.kill, number)
            figures.goes_on_s.append(await pairs.goes_on_s(replicas[index % 2], figures))
            await pairs.play(replicas, figures, 12, 2)
            await asyncio.to_thread(brokers.up, number)
            await asyncio.to_thread(brokers.heal)
    finally:
        for replica in replicas:
            await replica.close()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.scaleout", description=__doc__)
    parser.add_argument("kind", choices=("pairs", "kill", "freeze", "broker"))
    parser.add_argument("number", type=int, help="pairs, or rounds")
    parser.add_argument("--writers", type=int, default=4, help="clients at once that play pairs")
    parser.add_argument("--idle", action="store_true", help="end the other load first")
    options = parser.parse_args()
    figures = pairs.Figures()
    count = 3 if options.kind == "broker" else 1
    with (
        tempfile.TemporaryDirectory() as directory,
        LocalBrokers(count) as brokers,
        installed(brokers.servers, Path(directory), is_late=False) as running,
    ):
        if options.idle:
            running.load.stop()
        began_s = time.monotonic()
        try:
            if options.kind == "pairs":
                asyncio.run(_pairs(running, figures, options.number, options.writers))
            elif options.kind == "broker":
                asyncio.run(_brokers(running, figures, brokers, options.number))
            else:
                for index in range(options.number):
                    asyncio.run(pairs.fault(running, figures, options.kind, index))
        finally:
            print(f"{options.kind} {options.number}: {time.monotonic() - began_s:.0f} s")  # noqa: T201
            print(figures.summary(), flush=True)  # noqa: T201
        running.prove()
    if options.kind == "broker":
        # A partition without leader accepts no writes, so their durations are no errors here.
        figures.goes_on_s.clear()
    return int(bool(figures.wrong()))


if __name__ == "__main__":
    sys.exit(main())
