"""Repeat seeds. A single seed prints its moves, violations and their timeline; a range prints the failing seeds.

The exit code is 1 if a seed fails.
"""

import argparse
import asyncio
import logging
import sys

import structlog

from tests.simulation import profiles, timeline


async def print_run(profile: profiles.Profile, seed: int, count: int) -> bool:
    """Print the run of a seed; return whether it fails."""
    played = await profiles.play(profile, seed, count)
    lines = [*played.told, *(f"WRONG {wrong}" for wrong in played.wrong)]
    if played.wrong:
        lines += await timeline.around(played.world, played.wrong)
    sys.stdout.writelines(f"{line}\n" for line in lines)
    return bool(played.wrong)


parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
parser.add_argument("profile", choices=profiles.ALL)
parser.add_argument("seeds", help="one, or the first and the one behind the last: 5000-9000")
parser.add_argument("moves", type=int, nargs="?", default=40)
options = parser.parse_args()
chosen = profiles.ALL[options.profile]
first, _, end = options.seeds.partition("-")
# Log lines of the worker would interrupt the list of moves.
structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
if end:
    failing = asyncio.run(profiles.failing(chosen, range(int(first), int(end)), options.moves))
    sys.stdout.write(f"{failing}\n")
    sys.exit(bool(failing))
sys.exit(asyncio.run(print_run(chosen, int(first), options.moves)))
