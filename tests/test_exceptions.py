"""Deprecated names warn, document themselves, and go in time."""

from __future__ import annotations

import warnings

import pytest

import calibrant
from calibrant import exceptions
from calibrant.exceptions import DEPRECATIONS, deprecated


@pytest.fixture
def old_name(monkeypatch):
    monkeypatch.setattr(exceptions, "DEPRECATIONS", [])

    @deprecated(since="0.2", removed_in="0.4", instead="new_name(x)")
    def old_name(x):
        """Double a number."""
        return 2 * x

    return old_name


MESSAGE = (
    "old_name is deprecated since version 0.2 and will be removed in version 0.4. Use new_name(x)."
)


def test_a_deprecated_function_warns_at_the_line_of_the_caller_and_still_works(old_name):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert old_name(3) == 6
    (warning,) = caught
    assert warning.category is FutureWarning
    assert warning.filename == __file__
    assert str(warning.message).endswith(MESSAGE)


def test_the_docstring_of_a_deprecated_function_names_its_replacement(old_name):
    assert old_name.__doc__.startswith("Double a number.")
    assert ".. deprecated:: 0.2" in old_name.__doc__
    assert MESSAGE in old_name.__doc__


def test_a_deprecation_of_one_minor_release_is_rejected():
    with pytest.raises(ValueError, match="works for at least 2 minor releases"):
        deprecated(since="0.2", removed_in="0.3", instead="new_name(x)")


def test_a_major_release_ends_every_notice_of_the_one_before():
    deprecated(since="0.9", removed_in="1.0", instead="new_name(x)")


def test_no_name_outlives_its_deprecation():
    current = exceptions._minor(calibrant.__version__)
    assert [entry for entry in DEPRECATIONS if exceptions._minor(entry.removed_in) <= current] == []
