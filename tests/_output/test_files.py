"""Files are whole or not there."""

from __future__ import annotations

import os

import pytest

from calibrant._output.files import check_writable, write_text, written_aside


def test_a_file_takes_the_place_of_the_old_one_at_the_end(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    with written_aside(path) as aside:
        aside.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "a.txt"
    write_text(path, "old")

    def fail():
        with written_aside(path) as aside:
            aside.write_text("half")
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        fail()
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_a_link_is_followed(tmp_path):
    target, link = tmp_path / "target.txt", tmp_path / "link.txt"
    target.write_text("old")
    link.symlink_to(target)
    write_text(link, "new")
    assert link.is_symlink()
    assert target.read_text() == "new"


def test_a_device_is_written_directly():
    with written_aside(os.devnull) as path:
        assert str(path) == os.devnull


def test_what_cannot_be_written_is_said_beforehand(tmp_path):
    with pytest.raises(IsADirectoryError, match=r"is a directory. Pass the path of a file"):
        check_writable(tmp_path)
    with pytest.raises(
        FileNotFoundError, match=r"does not exist. Create the folder, or pass another path"
    ):
        check_writable(tmp_path / "no" / "a.txt")


class Denied:
    """Stands for ``os.replace`` on Windows while another program has the file open."""

    def __init__(self, times):
        self.left = times
        self.replace = os.replace

    def __call__(self, source, target):
        if self.left > 0:
            self.left -= 1
            raise PermissionError(13, "Access is denied", str(target))
        self.replace(source, target)


def test_a_file_that_is_open_elsewhere_for_a_moment_is_replaced(tmp_path, monkeypatch):
    path = tmp_path / "a.txt"
    path.write_text("old")
    pauses = []
    monkeypatch.setattr("calibrant._output.files.time.sleep", pauses.append)
    monkeypatch.setattr(os, "replace", Denied(2))
    write_text(path, "new")
    assert path.read_text() == "new"
    assert pauses == [0.05, 0.2]


def test_a_file_that_stays_open_elsewhere_is_kept_and_named(tmp_path, monkeypatch):
    path = tmp_path / "a.txt"
    path.write_text("old")
    monkeypatch.setattr("calibrant._output.files.time.sleep", lambda _: None)
    monkeypatch.setattr(os, "replace", Denied(99))
    with pytest.raises(PermissionError, match=r"a\.txt cannot be replaced\. Close the programs"):
        write_text(path, "new")
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.txt"]
