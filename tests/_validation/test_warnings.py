"""Remarks point at the line of the user, whoever stands between."""

from __future__ import annotations

import warnings
from functools import partial

import pytest

from calibrant._validation._warnings import user_level, warn_data
from calibrant.exceptions import DataWarning


def called_from(module, function):
    """``function`` behind a frame of the module of that name."""
    space = {"__name__": module, "function": function}
    exec("def call():\n    return function()", space)
    return space["call"]


@pytest.mark.parametrize("inside", ["calibrant.base", "sklearn.pipeline", "joblib"])
def test_lines_of_these_packages_are_not_the_users(inside):
    assert called_from(inside, user_level)() == 2
    assert called_from("calibrant", called_from(inside, user_level))() == 3


def test_a_package_that_only_begins_with_our_name_is_the_users():
    assert called_from("calibrant_extra", user_level)() == 1


def test_a_warning_is_a_warning_about_data_at_the_users_line():
    speak = called_from("calibrant.metrics", partial(warn_data, "this is odd"))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        speak()
    assert [(one.category, str(one.message)) for one in caught] == [(DataWarning, "this is odd")]
    assert caught[0].filename == __file__
