"""ES modules, run by Node."""

from __future__ import annotations

import json

import numpy as np
import pytest

import calibrant
from calibrant import export
from calibrant.export._javascript import FUNCTIONS
from exported import CASES, check, run_javascript


@pytest.mark.slow
@pytest.mark.parametrize(("calibrator", "n_classes", "inputs"), CASES)
def test_a_module_is_its_calibrator(calibrator, n_classes, inputs, tmp_path):
    check(lambda p, x: run_javascript(p, x, tmp_path), calibrator, n_classes, inputs)


def test_every_operation_is_written():
    assert set(export.OPS) <= set(FUNCTIONS)


def test_hostile_class_names_are_text(tmp_path):
    hostile = ['"]; process.exit(3) //', "</script><script>alert(1)", "`${process.exit(4)}`\u2028"]
    model = calibrant.Identity(classes=hostile).fit(np.eye(3), hostile)
    text = export.to_javascript(model)
    assert "</script>" not in text
    assert json.loads(text.split("CLASSES = ")[1].split(";\n")[0]) == hostile
    assert run_javascript(export.program(model), np.eye(3), tmp_path)[1] == hostile


def test_whole_numbers_that_javascript_rounds_are_rejected():
    build = export.Builder(2)
    build.append("softmax", (0,))
    with pytest.raises(ValueError, match="JavaScript rounds integers"):
        export.to_javascript(build.program("logits", (0, 2**53 + 1), ""))
