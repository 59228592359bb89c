"""The server's own token and authority: kept over restarts, and replaced if they are missing or damaged."""

import datetime as dt
from pathlib import Path

import pytest

from engine.identity import certificates, server_token

NOW = dt.datetime(2026, 11, 26, tzinfo=dt.UTC)


def test_token_is_kept_over_restarts(tmp_path: Path) -> None:
    token = server_token.load_or_create(tmp_path)
    assert len(token) >= 32
    assert server_token.load_or_create(tmp_path) == token
    assert (tmp_path / server_token.FILE).stat().st_mode & 0o077 == 0


def test_missing_or_truncated_token_is_replaced(tmp_path: Path) -> None:
    token = server_token.load_or_create(tmp_path)
    for broken in (b"", b"short", b"\xff" * 40):
        (tmp_path / server_token.FILE).write_bytes(broken)
        again = server_token.load_or_create(tmp_path)
        assert again != token
        assert len(again) >= 32


@pytest.mark.parametrize("name", ["kube-ca.pem", "kube-ca.key"])
def test_authority_is_replaced_if_it_is_missing_or_damaged(tmp_path: Path, name: str) -> None:
    authority, _ = certificates.authority(tmp_path, NOW)
    assert certificates.authority(tmp_path, NOW)[0] == authority
    (tmp_path / name).write_bytes(b"damaged")
    again, _ = certificates.authority(tmp_path, NOW)
    (tmp_path / name).unlink()
    assert len({authority, again, certificates.authority(tmp_path, NOW)[0]}) == 3


@pytest.mark.parametrize("name", ["kube-ca.pem", "kube-ca.key"])
def test_authority_that_cannot_be_read_is_not_replaced(tmp_path: Path, name: str) -> None:
    authority = certificates.authority(tmp_path, NOW)
    aside = (tmp_path / name).rename(tmp_path / "aside")
    (tmp_path / name).mkdir()  # also root, who may read any file, cannot read this one
    with pytest.raises(OSError, match="Is a directory"):
        certificates.authority(tmp_path, NOW)
    (tmp_path / name).rmdir()
    aside.rename(tmp_path / name)
    assert certificates.authority(tmp_path, NOW) == authority
