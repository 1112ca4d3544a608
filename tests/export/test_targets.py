"""The doors of the package: what they need, and what they say where it is missing."""

from __future__ import annotations

import sys

import pytest

import calibrant
from calibrant import export
from exported import fitted


@pytest.mark.parametrize(
    ("name", "remedy"),
    [("onnx", r"pip install .calibrant\[onnx\]"), ("torch", "pip install torch")],
)
def test_without_the_package_one_sentence_names_it(name, remedy, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, name, None)
    for module in [m for m in sys.modules if m.startswith(f"calibrant.export._{name}")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.delattr(export, f"_{name}", raising=False)
    model, _ = fitted(calibrant.TemperatureScaling(), 2)
    call = {
        "onnx": lambda: export.to_onnx(model, tmp_path / "cal.onnx"),
        "torch": lambda: export.to_torch(model),
    }[name]
    with pytest.raises(ImportError, match=remedy):
        call()


def test_a_folder_that_is_missing_is_said_before_anything_is_imported(tmp_path):
    model, _ = fitted(calibrant.TemperatureScaling(), 2)
    with pytest.raises(FileNotFoundError, match=r"does not exist. Create the folder"):
        export.to_onnx(model, tmp_path / "none" / "cal.onnx")


def test_an_exported_torch_file_computes_the_same(tmp_path):
    torch = pytest.importorskip("torch")
    model, scores = fitted(calibrant.TemperatureScaling(), 3)
    export.save_torch(model, tmp_path / "cal.pt2")
    module = torch.export.load(tmp_path / "cal.pt2").module()
    found = module(torch.tensor(scores)).numpy()
    assert abs(found - model.predict_proba(scores)).max() <= 1e-15
