"""Faults of members, of the log and of the worker, invalid records, leaps of the clock, and their end."""

from engine.simulation.listed_statuses import FaultKind
from events import keys, records, specs, topics
from tests.builders.manifests import raw
from tests.simulation.moves.templates import template
from tests.simulation.world import World

FAULTS: tuple[FaultKind, ...] = ("down", "slow", "losing")


async def hostile(world: World) -> str:
    """Append a record that must be rejected or skipped without stopping anything."""
    chance = world.chance
    kind = chance.choice(["garbage", "misplaced", "repeated", "late", "unknown", "forged"])
    partition = chance.randrange(topics.SHARDS)
    headers = {"ce_specversion": "1.0", "ce_id": f"h{world.log.last_number()}", "ce_source": "/hostile"}
    if kind in ("garbage", "unknown"):
        event = "io.reballast.template-applied.v1" if kind == "garbage" else "io.reballast.template-sung.v9"
        value = chance.choice(
            [b"", b"{", b"\xff\xfe", b"[" * 5_000, b'{"manifest": 7}', b'{"manifest": {"kind": "X"}}']
        )
        await world.log.append(
            [records.record(topics.SPECS, partition, "k", {**headers, "ce_type": event}, value)]
        )
    elif kind == "forged":
        await world.log.append(
            [records.record(topics.CLUSTERS, 0, "x", chance.choice([{}, {"ce_id": ""}]), b"{}")]
        )
    else:
        written = raw(template(world, "Deployment", "api"))
        key = keys.binding_key("Deployment", "default", "api")
        shard = keys.shard_of(key)
        wrong = (shard + 1) % topics.SHARDS if kind == "misplaced" else shard
        expects = 999_999 if kind == "late" else None
        repeated = "said-1" if kind == "repeated" else ""
        await world.submit(
            specs.TemplateApplied(manifest=written, expects=expects), key, wrong, event_id=repeated
        )
    return f"hostile: {kind}"


async def fault(world: World) -> str:
    name, kind = world.chance.choice(world.names), world.chance.choice(FAULTS)
    await world.members.fault(name, kind)
    return f"{name} is {kind}"


async def heal(world: World) -> str:
    name = world.chance.choice(world.names)
    await world.members.heal(name)
    return f"{name} is healed"


async def fail_append(world: World) -> str:
    world.log.failing = world.chance.choice(["before", "after"])
    try:
        await world.worker.turn()
    except Exception as error:  # noqa: BLE001  # whatever it is, the worker must come back from it
        await world.worker.recover()
        return f"append failed: {error}"
    finally:
        world.log.failing = ""
    return "nothing was appended"


async def crash(world: World) -> str:
    await world.crash()
    return "crash"


async def keep_snapshot(world: World) -> str:
    await world.worker.store_snapshot()
    return f"snapshot {world.kept.numbers()[0]}"


async def crash_without_the_newest_snapshot(world: World) -> str:
    """Crash with the newest snapshot deleted or damaged (or none written yet)."""
    numbers = world.kept.numbers()
    if numbers and world.chance.random() < 0.5:
        world.kept.drop(numbers[0])
    elif numbers:
        world.kept.damage(numbers[0], world.chance.randrange(1_000_000))
    await world.crash()
    return f"crash without the newest snapshot of {numbers}"


async def leap(world: World) -> str:
    step_ms = world.chance.choice([1, 100, 10_000, 40_000, 700_000])
    world.now_ms += step_ms
    return f"{step_ms} ms pass"


async def well(world: World) -> None:
    """Heal all members and deliver all delayed reports."""
    world.log.slow.clear()
    await world.log.arrive(world.chance, len(world.log.held))
    for name in world.names:
        await world.members.heal(name)
