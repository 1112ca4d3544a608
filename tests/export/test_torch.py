"""PyTorch modules."""

from __future__ import annotations

import numpy as np
import pytest

import calibrant
from calibrant import export
from exported import CASES, check, fitted, run_torch

torch = pytest.importorskip("torch", reason="torch is not installed")


@pytest.mark.parametrize(("calibrator", "n_classes", "inputs"), CASES)
def test_a_module_is_its_calibrator(calibrator, n_classes, inputs):
    check(run_torch, calibrator, n_classes, inputs)


def test_every_operation_is_written():
    from calibrant.export._torch import COMPUTE

    assert set(COMPUTE) == set(export.OPS)


def test_nothing_is_learnt_unless_asked_for():
    model, _ = fitted(calibrant.StructuredScaling(), 3)
    assert list(export.to_torch(model).parameters()) == []
    names = {name for name, _ in export.to_torch(model, trainable=True).named_parameters()}
    assert any(name.endswith("_coef") for name in names)
    assert any(name.endswith("_by") for name in names)


def test_the_gradient_of_a_fitted_map_is_ours():
    """At the optimum of the unpenalised log-loss the gradient is zero; away from it, it is that of
    finite differences of our own predictions.
    """
    model, scores = fitted(calibrant.VectorScaling(), 3)
    codes = torch.arange(len(scores)) % 3
    module = export.to_torch(model, trainable=True)
    loss = -torch.log(module(torch.tensor(scores))[torch.arange(len(scores)), codes]).mean()
    loss.backward()
    found = dict(module.named_parameters())
    factor = next(value for name, value in found.items() if name.endswith("_factor"))
    for k in range(3):
        assert abs(float(factor.grad[k]) - slope(model, scores, codes.numpy(), k)) < 1e-8


def slope(model, scores, codes, k, step=1e-5):
    def loss(by):
        kept = np.array(model.coef_)
        model.coef_ = kept + by * np.eye(3)[k]
        value = -np.log(model.predict_proba(scores)[np.arange(len(scores)), codes]).mean()
        model.coef_ = kept
        return value

    far = (loss(2 * step) - loss(-2 * step)) / (4 * step)
    near = (loss(step) - loss(-step)) / (2 * step)
    return (4 * near - far) / 3


def test_the_result_has_the_dtype_of_the_scores():
    model, scores = fitted(calibrant.TemperatureScaling(), 3)
    assert export.to_torch(model)(torch.tensor(scores).float()).dtype == torch.float32


def test_a_module_moves_and_is_restored_by_its_state():
    model, scores = fitted(calibrant.MulticlassToBinary(calibrant.HistogramBinning(n_bins=3)), 3)
    module, other = export.to_torch(model), export.to_torch(model)
    other.load_state_dict(module.state_dict())
    assert torch.equal(other(torch.tensor(scores)), module(torch.tensor(scores)))
