"""Folders for Unix sockets: short enough, private, and never another user's."""

import os
import socket
import stat
import tempfile
from pathlib import Path

import pytest

from memory_core.kernel.errors import StackFault
from stack import sockets

NAME = ".s.PGSQL.5432"


def test_a_short_path_stays_in_the_data_dir(tmp_path: Path) -> None:
    assert sockets.folder(Path("/srv/memory/pg-socket"), NAME) == Path("/srv/memory/pg-socket")


def test_one_that_is_too_long_gets_a_short_folder_that_is_always_the_same() -> None:
    deep = Path("/srv") / ("ü" * 60) / "pg-socket"
    short = sockets.folder(deep, NAME)
    assert short.parent == Path(tempfile.gettempdir())
    assert short == sockets.folder(deep, NAME)
    assert short != sockets.folder(deep.with_name("dagster-socket"), NAME)


@pytest.mark.parametrize("length", [60, 88, 89, 90, 120, 300])
def test_a_socket_can_be_bound_whatever_the_length(tmp_path: Path, length: int) -> None:
    beside = tmp_path / ("d" * max(1, length - len(str(tmp_path))))
    folder = sockets.folder(beside if len(beside.name) < 200 else beside.with_name("d" * 200), NAME)
    sockets.make_private(folder)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder / NAME))
    (folder / NAME).unlink()
    folder.rmdir()


def test_it_is_private_also_when_it_was_not(tmp_path: Path) -> None:
    folder = tmp_path / "sockets"
    folder.mkdir(mode=0o777)
    sockets.make_private(folder)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_link_of_another_account_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir(mode=0o755)
    (tmp_path / "sockets").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StackFault, match="is a link or belongs to another user"):
        sockets.make_private(tmp_path / "sockets")
    assert stat.S_IMODE((tmp_path / "elsewhere").stat().st_mode) == 0o755


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_folder_of_another_user_is_refused(tmp_path: Path) -> None:
    (tmp_path / "sockets").mkdir()
    os.chown(tmp_path / "sockets", 12345, 12345)
    with pytest.raises(StackFault, match="belongs to another user"):
        sockets.make_private(tmp_path / "sockets")
