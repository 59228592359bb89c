"""The server's own token: the same after a restart, another one where it was taken away or cut short."""

from pathlib import Path

from engine import kept_tokens


def test_it_is_kept(tmp_path: Path) -> None:
    found = kept_tokens.kept(tmp_path)
    assert len(found) >= 32
    assert kept_tokens.kept(tmp_path) == found
    assert (tmp_path / kept_tokens.FILE).stat().st_mode & 0o077 == 0


def test_another_one_where_it_is_none(tmp_path: Path) -> None:
    found = kept_tokens.kept(tmp_path)
    for broken in (b"", b"short", b"\xff" * 40):
        (tmp_path / kept_tokens.FILE).write_bytes(broken)
        again = kept_tokens.kept(tmp_path)
        assert again != found
        assert len(again) >= 32
