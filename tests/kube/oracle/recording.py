"""Play the named stories, or all, against a real API server, and record its answers.

python -m tests.kube.oracle.recording https://127.0.0.1:6443 CA.crt TOKEN [STORY...]
"""

import asyncio
import gzip
import ssl
import sys
from pathlib import Path
from typing import Final

import httpx
import msgspec

from tests.kube.oracle.book import STORIES
from tests.kube.oracle.playing import Answer, play

VECTORS: Final = Path(__file__).parents[1] / "vectors" / "oracle.jsonl.gz"


def recorded() -> dict[str, list[Answer]]:
    """Return the recorded answers of the real server by story."""
    by_story: dict[str, list[Answer]] = {}
    for line in gzip.decompress(VECTORS.read_bytes()).splitlines():
        answer = msgspec.json.decode(line, type=Answer)
        by_story.setdefault(answer.story, []).append(answer)
    return by_story


async def _record(url: str, authority: str, token: str, *names: str) -> None:
    answers = recorded() if names else {}
    trusted = ssl.create_default_context(cafile=authority)
    headers = {"authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(base_url=url, verify=trusted, headers=headers, timeout=60) as client:
        for name in names or STORIES:
            answers[name] = await play(client, name, STORIES[name])
    lines = [msgspec.json.encode(answer) for name in STORIES for answer in answers[name]]
    VECTORS.write_bytes(gzip.compress(b"\n".join(lines), mtime=0))


if __name__ == "__main__":
    asyncio.run(_record(*sys.argv[1:]))
