"""Files that a command may replace."""

from __future__ import annotations

import pytest

from calibrant.cli._existing import check_other_file, check_replaceable

MODEL = '{"format": "calibrant-model"}'
METRICS = "# HELP calibrant_monitor_alarm 1 after an alarm\n"


@pytest.mark.parametrize(
    ("content", "kind", "is_allowed"),
    [
        ("", "model", True),
        (MODEL, "model", True),
        (MODEL, "report", False),
        (METRICS, "metrics", True),
        (METRICS, "page", False),
        ("a,b\n", "model", False),
        ("a,b\n", "table", True),
        ("a,b\n", "metrics", False),
    ],
)
def test_a_file_is_replaced_by_one_of_its_kind(content, kind, is_allowed, tmp_path):
    path = tmp_path / "file"
    path.write_text(content)
    if is_allowed:
        check_replaceable(path, kind)
        return
    with pytest.raises(ValueError, match="would be overwritten"):
        check_replaceable(path, kind)


def test_a_link_to_the_input_is_the_input(tmp_path):
    (tmp_path / "in").write_text("x")
    (tmp_path / "link").symlink_to(tmp_path / "in")
    with pytest.raises(ValueError, match="is an input file and would be overwritten"):
        check_other_file(tmp_path / "link", None, tmp_path / "in")
    check_other_file(tmp_path / "new", tmp_path / "in")
