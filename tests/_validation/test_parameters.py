"""Messages that name parameters."""

from __future__ import annotations

import pickle

from calibrant._validation import Message, ParameterError
from calibrant.cli import spell_option


def test_a_front_end_spells_the_parameters_and_leaves_the_values_alone():
    message = Message(
        "{column!r} is not there: pass {log_proba:'lp_*'}, {n_classes:10} or {renormalize:True}",
        {"column": "--proba {x}"},
    )
    assert str(message) == (
        "'--proba {x}' is not there: pass log_proba='lp_*', n_classes=10 or renormalize=True"
    )
    assert message.spell(spell_option) == (
        "'--proba {x}' is not there: pass --log-proba 'lp_*', --n-classes 10 or --renormalize"
    )


def test_a_parameter_may_only_be_mentioned():
    error = ParameterError("say so by {label}")
    assert str(error) == "say so by label="
    assert error.message.spell(spell_option) == "say so by --label"


def test_a_value_is_quoted_where_a_shell_needs_it():
    assert spell_option("proba", "'a,b'") == "--proba a,b"
    assert spell_option("proba", "'a b,c'") == "--proba 'a b,c'"


def test_an_error_comes_back_from_another_process():
    error = pickle.loads(pickle.dumps(ParameterError("no {name}", {"name": "{braces}"})))
    assert str(error) == "no {braces}"
