"""Operations as SQL expressions: all of them, quoted and exact."""

from __future__ import annotations

import numpy as np
import pytest

import calibrant
from calibrant import export
from calibrant.export._sql_ops import DIALECTS, EXPRESSIONS, STEPS
from exported import fitted


def test_every_operation_is_written():
    assert {*EXPRESSIONS, *STEPS, "top"} == set(export.OPS)


def test_quotes_are_written_as_each_engine_wants_them():
    model = calibrant.Identity(classes=["it's", "b\\"]).fit(np.eye(2), ["it's", "b\\"])
    texts = {
        dialect: export.to_sql(model, table="a.t", columns=["x`", 'y"'], dialect=dialect)
        for dialect in DIALECTS
    }
    assert "'it''s'" in texts["postgres"]
    assert '"a"."t"' in texts["postgres"]
    assert r"'it\'s'" in texts["bigquery"]
    assert r"'b\\'" in texts["bigquery"]
    assert r"`x\``" in texts["bigquery"]
    assert "`x```" in texts["spark"]
    assert '"y"""' in texts["snowflake"]


def test_numbers_have_an_exponent_and_all_digits():
    model, _ = fitted(calibrant.TemperatureScaling(), 2)
    text = export.to_sql(model, table="t", columns=["a", "b"])
    assert f"{model.temperature_:.17e}" in text
    postgres = export.to_sql(model, table="t", columns=["a", "b"], dialect="postgres")
    assert f"{model.temperature_:.17e}::float8" in postgres


def test_a_matrix_that_is_too_large_is_rejected_with_the_remedy():
    build = export.Builder(1500)
    maps = {"coef": np.eye(1500), "offset": np.zeros(1500)}
    build.append("affine", (0,), maps)
    program = build.program("logits", tuple(range(1500)), "")
    with pytest.raises(ValueError, match="StructuredScaling"):
        export.to_sql(program, table="t", columns=[f"c{k}" for k in range(1500)])
