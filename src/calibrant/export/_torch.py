"""Export to a PyTorch module with the constants of a program as buffers or parameters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from calibrant._kernels.simplex import SHORT_ROW
from calibrant._output.files import written_aside
from calibrant.export._boundary import guarded
from calibrant.export._ops import segments
from calibrant.export._program import Node, Program

TRAINABLE = {
    "divide": ("by",),
    "scale": ("factor", "offset"),
    "affine": ("coef", "offset"),
    "bumps": ("heights",),
}
"""Constants that can be fine-tuned. Weights of mixtures are not among them, because the weights
must stay on the simplex."""


@dataclass(frozen=True)
class ModuleOptions:
    """Options of a module for its arithmetic, its scores and its results."""

    dtype: str = "float64"
    trainable: bool = False
    class_axis: int = -1
    output: str = "proba"


Constants = dict[str, Any]
Compute = Callable[[list[Tensor], Constants], Tensor]


def _mix(x: list[Tensor], c: Constants) -> Tensor:
    total = c["constant"].expand_as(x[0])
    for value, weight in zip(x, c["weights"], strict=True):
        total = total + weight * value
    return total


def _subtract_max(x: Tensor) -> Tensor:
    """Subtract the largest entry of each row, which is a constant for gradients."""
    return x - x.detach().amax(dim=1, keepdim=True)


def _row_sum(x: Tensor) -> Tensor:
    """Sum each row.

    Long rows are summed by halves, because ``sum`` and ``softmax`` lose more bits.
    """
    while x.shape[1] > SHORT_ROW:
        half = x.shape[1] // 2
        x = torch.cat([x[:, :half] + x[:, half : 2 * half], x[:, 2 * half :]], dim=1)
    return x.sum(dim=1, keepdim=True)


def _softmax(x: list[Tensor], c: Constants) -> Tensor:
    powers = _subtract_max(x[0]).exp()
    return powers / _row_sum(powers)


def _log_softmax(x: list[Tensor], c: Constants) -> Tensor:
    shifted = _subtract_max(x[0])
    return shifted - _row_sum(shifted.exp()).log()


def _normalize(x: list[Tensor], c: Constants) -> Tensor:
    total = _row_sum(x[0])
    shares = x[0] / torch.where(total > 0, total, torch.ones_like(total))
    return torch.where(total > 0, shares, c["empty"])


def _interpolate(x: list[Tensor], c: Constants) -> Tensor:
    index = torch.searchsorted(c["x"], x[0].contiguous(), right=True)
    return c["slopes"][index] * (x[0] - c["starts"][index]) + c["heights"][index]


def _step(x: list[Tensor], c: Constants) -> Tensor:
    index = torch.searchsorted(c["edges"], x[0].contiguous(), right=c["side"] == "right")
    return c["values"][index]


def _bumps(x: list[Tensor], c: Constants) -> Tensor:
    far = (x[0].unsqueeze(-1) - c["centers"]) / c["width"]
    return (torch.exp(-0.5 * far * far) * c["heights"]).sum(dim=-1)


def _finite(x: list[Tensor], c: Constants) -> Tensor:
    is_low = x[0] == -torch.inf
    floor = _log_sum_exp(x, c) + c["eps"].log()
    least = torch.where(is_low, torch.inf, x[0]).amin(dim=1, keepdim=True)
    return torch.where(is_low, torch.minimum(floor, least), x[0])


def _log_sum_exp(x: list[Tensor], c: Constants) -> Tensor:
    return torch.logsumexp(x[0], dim=1, keepdim=True)


def _clip(x: list[Tensor], c: Constants) -> Tensor:
    # clamp is not used, because torch.onnx.export gives two clamps of the same value the same name,
    # and no runtime loads such a file. Values of at least `high` become a constant, so
    # their gradient is zero. This matters for sums of probabilities, which `_admit` replaces by 1.
    return torch.where(x[0] < c["low"], c["low"], torch.where(x[0] >= c["high"], c["high"], x[0]))


def _admit(x: list[Tensor], c: Constants) -> Tensor:
    is_admitted = (x[0] >= c["low"] - c["slack"]) & (x[0] <= c["high"] + c["slack"])
    return torch.where(is_admitted, _clip(x, c), torch.nan)


def _top(x: list[Tensor], c: Constants) -> Tensor:
    order = torch.sort(x[0], dim=1, descending=True, stable=True).indices
    return order[:, : c["count"]].to(x[0].dtype)


def _put(x: list[Tensor], c: Constants) -> Tensor:
    labels = x[1].long()
    return x[0].scatter(1, labels, x[2].expand(labels.shape))


COMPUTE: dict[str, Compute] = {
    "finite": _finite,
    "clip": _clip,
    "admit": _admit,
    "coalesce": lambda x, c: torch.where(x[0].isnan(), x[1], x[0]),
    "log": lambda x, c: x[0].log(),
    "log_odds": lambda x, c: x[0].log() - torch.log1p(-x[0]),
    "log_expit": lambda x, c: x[0].clamp(max=0.0) - torch.log1p(torch.exp(-x[0].abs())),
    "expit": lambda x, c: torch.sigmoid(x[0]),
    "divide": lambda x, c: x[0] / c["by"],
    "scale": lambda x, c: x[0] * c["factor"] + c["offset"],
    "affine": lambda x, c: x[0] @ c["coef"].T + c["offset"],
    "center": lambda x, c: x[0] - _row_sum(x[0]) / x[0].shape[1],
    "softmax": _softmax,
    "log_softmax": _log_softmax,
    "log_sum_exp": _log_sum_exp,
    "sum": lambda x, c: _row_sum(x[0]),
    "normalize": _normalize,
    "add": lambda x, c: x[0] + x[1],
    "multiply": lambda x, c: x[0] * x[1],
    "quotient": lambda x, c: x[0] / x[1],
    "mix": _mix,
    "step": _step,
    "interpolate": _interpolate,
    "bumps": _bumps,
    "top": _top,
    "columns": lambda x, c: x[0][:, c["columns"]],
    "stack": lambda x, c: torch.cat(x, dim=1),
    "constant": lambda x, c: c["values"].expand(x[0].shape[0], -1),
    "take": lambda x, c: torch.gather(x[0], 1, x[1].long()),
    "put": _put,
}


class CalibratorModule(nn.Module):
    """A layer that turns scores into calibrated probabilities of the same shape.

    The arithmetic is in ``dtype``, and the result has the dtype of the scores. The result is NaN
    for invalid rows. ``state_dict`` contains all numbers. Buffers and parameters have names
    ``n<node>_<name>``.
    """

    def __init__(self, program: Program, options: ModuleOptions) -> None:
        super().__init__()
        self.classes = program.classes
        self.inputs = program.inputs
        self.source = program.source
        self.options = options
        self.dtype = getattr(torch, options.dtype)
        checked = guarded(program, options.dtype, options.output)
        self.outputs = checked.outputs
        self._nodes = [
            (node.op, node.args, self._add_constants(n, node))
            for n, node in enumerate(checked.nodes, start=1)
        ]

    def _add_constants(self, number: int, node: Node) -> dict[str, Any]:
        """Register the constants of a node as buffers or parameters, and return their names."""
        constants: dict[str, Any] = {}
        for name, value in _constants(node).items():
            # These options determine the structure, so they are not tensors.
            if name in ("side", "count"):
                constants[name] = value
                continue
            constants[name] = _Name(f"n{number}_{name}")
            if self.options.trainable and _is_trainable(node, name):
                self.register_parameter(constants[name], nn.Parameter(self._tensor(name, value)))
            else:
                self.register_buffer(constants[name], self._tensor(name, value))
        return constants

    def _tensor(self, name: str, value: Any) -> Tensor:
        if name == "columns":
            return torch.tensor(np.array(value), dtype=torch.long)
        # Clip, because the largest double would be infinite in single precision.
        limit = torch.finfo(self.dtype).max
        return torch.tensor(np.clip(value, -limit, limit), dtype=self.dtype)

    def forward(self, scores: Tensor) -> Any:
        """Return calibrated probabilities of scores with the class axis of the module.

        A program with named outputs returns a dictionary with "probabilities" and these outputs.
        Labels are indices into the ``labels`` of the entry of ``outputs``. Invalid rows give NaN.
        """
        axis, n_classes = self.options.class_axis, len(self.classes)
        if not -scores.ndim <= axis < scores.ndim or scores.shape[axis] != n_classes:
            raise ValueError(
                f"The class axis {axis} of the scores must have length {n_classes}, got shape "
                f"{tuple(scores.shape)}. If another axis is the class axis, pass class_axis= to "
                "to_torch."
            )
        last = scores.movedim(axis, -1)
        values = self._run(last.reshape(-1, n_classes).to(self.dtype))

        def restored(result: Tensor) -> Tensor:
            typed = result.to(scores.dtype)
            if result.shape[1] != n_classes:
                return typed.reshape(last.shape[:-1])
            return typed.reshape(last.shape).movedim(-1, axis)

        if not self.outputs:
            return restored(values[-1])
        named = {output.name: restored(values[output.value]) for output in self.outputs}
        return {"probabilities": restored(values[-1]), **named}

    def _run(self, rows: Tensor) -> list[Tensor]:
        values = [rows]
        for op, args, constants in self._nodes:
            tensors = {
                name: getattr(self, value) if isinstance(value, _Name) else value
                for name, value in constants.items()
            }
            values.append(COMPUTE[op]([values[arg] for arg in args], tensors))
        return values

    def extra_repr(self) -> str:
        """Return the calibrator and the options, for ``repr``."""
        options = self.options
        return (
            f"{self.source}, n_classes={len(self.classes)}, inputs={self.inputs!r}, "
            f"output={options.output!r}, class_axis={options.class_axis}, dtype={options.dtype}"
        )


class _Name(str):
    """The name of a buffer or parameter that replaces a constant."""

    __slots__ = ()


def _is_trainable(node: Node, name: str) -> bool:
    """Return whether a constant can be fine-tuned. Factors of -1 in differences are fixed."""
    is_difference = node.op == "scale" and bool(np.all(node.constants["factor"] == -1.0))
    return name in TRAINABLE.get(node.op, ()) and not is_difference


def _constants(node: Node) -> dict[str, Any]:
    if node.op != "interpolate":
        return dict(node.constants)
    starts, heights, slopes = segments(node.constants["x"], node.constants["y"])
    points = np.asarray(node.constants["x"])
    return {"x": points, "starts": starts, "heights": heights, "slopes": slopes}


def save_module(program: Program, path: Any) -> None:
    """Write the module with ``torch.export``, for any number of rows."""
    module = CalibratorModule(program, ModuleOptions())
    example = torch.full((2, program.n_classes), 1.0 / program.n_classes, dtype=torch.float64)
    rows = torch.export.Dim("n", min=1)
    exported = torch.export.export(module, (example,), dynamic_shapes=({0: rows},))
    with written_aside(path) as aside, aside.open("wb") as file:
        torch.export.save(exported, file)
