"""PyTorch modules."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

import calibrant
from calibrant import export
from exported import CASES, check, fitted, run_torch, session_of

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


@pytest.mark.parametrize(
    "calibrator", [calibrant.TemperatureScaling(), calibrant.StructuredScaling()], ids=repr
)
def test_a_state_dict_copies_every_parameter_to_another_module(calibrator):
    model, scores = fitted(calibrator, 3)
    labels = (scores.argmax(axis=1) + (np.arange(len(scores)) % 4 == 0)) % 3
    refitted = clone(calibrator).fit(scores, labels)
    module, other = export.to_torch(model), export.to_torch(refitted)
    assert not torch.allclose(other(torch.tensor(scores)), module(torch.tensor(scores)))
    other.load_state_dict(module.state_dict())
    assert torch.equal(other(torch.tensor(scores)), module(torch.tensor(scores)))


SHAPES = [((7, 3), -1), ((2, 7, 3), -1), ((2, 3, 4, 5), 1), ((3, 3, 3), 1), ((3, 6), 0)]


@pytest.mark.parametrize(("shape", "class_axis"), SHAPES)
@pytest.mark.parametrize(
    "calibrator",
    [
        calibrant.StructuredScaling("vector"),
        calibrant.AutoCalibration(cv=3),
        calibrant.MulticlassToBinary(calibrant.IsotonicCalibration(), notion="top-label"),
    ],
    ids=repr,
)
def test_tokens_and_images_have_the_same_probabilities_as_rows(calibrator, shape, class_axis):
    model, _ = fitted(calibrator, 3, "logits")
    scores = np.random.default_rng(0).normal(scale=2.0, size=shape)
    found = export.to_torch(model, class_axis=class_axis)(torch.tensor(scores)).numpy()
    expected = calibrant.map_scores(model.predict_proba, scores, class_axis=class_axis)
    assert np.abs(found - expected).max() <= 1e-13
    assert np.allclose(found.sum(axis=class_axis), 1.0)


@pytest.mark.parametrize("shape", [(2, 3, 7), (3, 4, 4, 2), (5,), ()])
def test_scores_without_the_classes_on_their_axis_are_rejected(shape):
    model, _ = fitted(calibrant.TemperatureScaling(), 3)
    with pytest.raises(ValueError, match="class axis -1 of the scores must have length 3"):
        export.to_torch(model)(torch.zeros(shape))


@pytest.mark.parametrize("inputs", ["proba", "logits"])
@pytest.mark.parametrize(
    "calibrator",
    [
        calibrant.StructuredScaling(),
        calibrant.EnsembleTemperatureScaling(),
        calibrant.MulticlassToBinary(calibrant.PlattScaling()),
    ],
    ids=repr,
)
def test_logits_and_log_probabilities_are_those_of_the_probabilities(calibrator, inputs):
    model, scores = fitted(calibrator, 3, inputs)
    expected = model.predict_proba(scores)
    log_proba = export.to_torch(model, output="log_proba")(torch.tensor(scores))
    logits = export.to_torch(model, output="logits")(torch.tensor(scores))
    assert np.abs(log_proba.exp().numpy() - expected).max() <= 1e-13
    assert np.abs(logits.softmax(dim=1).numpy() - expected).max() <= 1e-13


def test_an_unknown_output_is_rejected():
    model, _ = fitted(calibrant.TemperatureScaling(), 3)
    with pytest.raises(ValueError, match="output must be one of 'proba', 'log_proba', 'logits'"):
        export.to_torch(model, output="odds")


def test_the_check_of_rows_adds_nothing_to_gradients():
    model, _ = fitted(calibrant.Identity(), 3)
    module, row = export.to_torch(model), torch.tensor([[0.25, 0.25, 0.5]], dtype=torch.float64)
    jacobian = torch.autograd.functional.jacobian(module, row)[0, :, 0]
    assert torch.equal(jacobian, torch.eye(3, dtype=torch.float64))


def test_single_precision_rejects_the_same_rows():
    model, _ = fitted(calibrant.TemperatureScaling(), 3, "logits")
    rows = torch.tensor([[float("inf"), 0.0, 0.0], [float("nan"), 0.0, 0.0], [1.0, 0.0, 0.0]])
    proba = export.to_torch(model, dtype="float32")(rows)
    assert proba.isnan().all(dim=1).tolist() == [True, True, False]


def test_a_module_prints_the_calibrator_and_its_options():
    model, _ = fitted(calibrant.TemperatureScaling(), 3)
    shown = repr(export.to_torch(model, class_axis=1, output="logits"))
    assert shown == (
        "CalibratorModule(TemperatureScaling, n_classes=3, inputs='proba', output='logits', "
        "class_axis=1, dtype=float64)"
    )


def test_differences_are_not_trained():
    model, _ = fitted(calibrant.PlattScaling(), 2)
    module = export.to_torch(model, trainable=True)
    assert sorted(name.split("_")[1] for name, _ in module.named_parameters()) == [
        "factor",
        "offset",
    ]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("inputs", ["proba", "logits"])
@pytest.mark.parametrize("dynamo", [False, True])
def test_pytorch_can_export_modules_of_scaling_methods_with_both_exporters(
    inputs, dynamo, tmp_path
):
    pytest.importorskip("onnxscript", reason="torch.onnx.export needs onnxscript")
    model, scores = fitted(calibrant.StructuredScaling(), 3, inputs)
    path, example = tmp_path / "module.onnx", (torch.tensor(scores[:4]),)
    torch.onnx.export(export.to_torch(model), example, path, dynamo=dynamo, input_names=["x"])
    found = session_of(path).run(None, {"x": scores[:4]})[0]
    assert np.abs(found - model.predict_proba(scores[:4])).max() <= 1e-12
