"""Commands as processes, and the kubeconfig of a Karmada for them."""

import asyncio
import subprocess
import sys
from pathlib import Path

KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: karmada
contexts: [{name: karmada, context: {cluster: karmada, user: observer}}]
clusters: [{name: karmada, cluster: {server: "%s"}}]
users: [{name: observer, user: {token: a-token}}]
"""


async def run(directory: Path, *words: str, code: int | None = 0) -> str:
    """Run a command against the data directory, and return its output; with the code None it must not fail."""
    return (await outputs(directory, *words, code=code))[0]


async def outputs(directory: Path, *words: str, code: int | None = 0) -> tuple[str, str]:
    """Run a command as ``run`` does, and return its output and its warnings."""
    command = [sys.executable, "-m", "engine.cli", *words, "--data", str(directory)]
    process = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    output, errors = await process.communicate()
    assert process.returncode in ({0, 2} if code is None else {code}), (
        words,
        process.returncode,
        output,
        errors,
    )
    return output.decode(), errors.decode()
