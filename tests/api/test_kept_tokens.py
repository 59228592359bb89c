"""The server's own token: the same after a restart, another one where it was taken away or cut short."""

from pathlib import Path

from engine.identity import server_token


def test_it_is_kept(tmp_path: Path) -> None:
    found = server_token.kept(tmp_path)
    assert len(found) >= 32
    assert server_token.kept(tmp_path) == found
    assert (tmp_path / server_token.FILE).stat().st_mode & 0o077 == 0


def test_another_one_where_it_is_none(tmp_path: Path) -> None:
    found = server_token.kept(tmp_path)
    for broken in (b"", b"short", b"\xff" * 40):
        (tmp_path / server_token.FILE).write_bytes(broken)
        again = server_token.kept(tmp_path)
        assert again != found
        assert len(again) >= 32
