"""The wheel that users install: all files of the packages, and no others."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.tidy import trees

_SHIPPED = ("engine", "events", "projections")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built as in CI."""
    out = tmp_path_factory.mktemp("wheel")
    command = [
        sys.executable,
        "-m",
        "build",
        "--wheel",
        "--no-isolation",
        "--outdir",
        str(out),
        str(trees.ROOT),
    ]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    (path,) = out.glob("*.whl")
    return path


@pytest.mark.slow
def test_wheel_has_every_file_of_the_packages_and_no_other(wheel: Path) -> None:
    carried = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    expected = {trees.name_of(path) for path in trees.files() if trees.name_of(path).startswith(_SHIPPED)}
    assert carried == expected


@pytest.mark.slow
def test_wheel_installs_the_command_and_has_the_licence(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    metadata = {name.partition("/")[2]: name for name in archive.namelist() if ".dist-info/" in name}
    assert "reballast = engine.cli.main:main" in archive.read(metadata["entry_points.txt"]).decode()
    assert "Apache License" in archive.read(metadata["licenses/LICENSE"]).decode()
