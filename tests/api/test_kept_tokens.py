"""The server's own token: kept over restarts, and replaced if it is missing or truncated."""

from pathlib import Path

from engine.identity import server_token


def test_token_is_kept_over_restarts(tmp_path: Path) -> None:
    found = server_token.kept(tmp_path)
    assert len(found) >= 32
    assert server_token.kept(tmp_path) == found
    assert (tmp_path / server_token.FILE).stat().st_mode & 0o077 == 0


def test_missing_or_truncated_token_is_replaced(tmp_path: Path) -> None:
    found = server_token.kept(tmp_path)
    for broken in (b"", b"short", b"\xff" * 40):
        (tmp_path / server_token.FILE).write_bytes(broken)
        again = server_token.kept(tmp_path)
        assert again != found
        assert len(again) >= 32
