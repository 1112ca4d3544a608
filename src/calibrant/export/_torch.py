"""PyTorch: a module that computes a program, with its constants as buffers or parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from calibrant._kernels.simplex import SHORT_ROW
from calibrant._output.files import written_aside
from calibrant.export._ops import segments
from calibrant.export._program import Node, Program

TRAINABLE = {
    "divide": ("by",),
    "scale": ("factor", "offset"),
    "affine": ("coef", "offset"),
    "bumps": ("heights",),
}
"""Constants that can be learnt on; weights of mixtures must stay on the simplex and are not."""

Constants = dict[str, Any]
Compute = Callable[[list[Tensor], Constants], Tensor]


def _mix(x: list[Tensor], c: Constants) -> Tensor:
    total = torch.full_like(x[0], float(c["constant"]))
    for value, weight in zip(x, c["weights"], strict=True):
        total = total + weight * value
    return total


def _subtract_max(x: Tensor) -> Tensor:
    """Each row minus its largest entry, a constant to gradients."""
    return x - x.detach().amax(dim=1, keepdim=True)


def _row_sum(x: Tensor) -> Tensor:
    """Sum of each row, of a long one by halves: ``sum`` and ``softmax`` lose more bits."""
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
    return torch.where(total > 0, shares, torch.full_like(shares, float(c["empty"])))


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
    is_low = torch.isneginf(x[0])
    floor = torch.logsumexp(x[0], dim=1, keepdim=True) + float(np.log(c["eps"]))
    least = torch.where(is_low, torch.inf, x[0]).amin(dim=1, keepdim=True)
    return torch.where(is_low, torch.minimum(floor, least), x[0])


def _top(x: list[Tensor], c: Constants) -> Tensor:
    order = torch.sort(x[0], dim=1, descending=True, stable=True).indices
    return order[:, : c["count"]].to(x[0].dtype)


def _put(x: list[Tensor], c: Constants) -> Tensor:
    labels = x[1].long()
    return x[0].scatter(1, labels, x[2].expand(labels.shape))


COMPUTE: dict[str, Compute] = {
    "finite": _finite,
    "clip": lambda x, c: x[0].clamp(float(c["low"]), float(c["high"])),
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
    """A program as a layer: scores (n, K) in, calibrated probabilities (n, K) out.

    Arithmetic is in ``dtype``, whatever the scores; the result has the dtype of the scores.
    ``state_dict`` holds all constants; a number is ``n<node>_<name>``.
    """

    def __init__(self, program: Program, dtype: Any, trainable: bool) -> None:
        super().__init__()
        self.classes = program.classes
        self.inputs = program.inputs
        self.dtype = dtype
        self._nodes = [
            (node.op, node.args, self._add_constants(n, node, trainable))
            for n, node in enumerate(program.nodes, start=1)
        ]

    def _add_constants(self, number: int, node: Node, trainable: bool) -> dict[str, Any]:
        """Register the constants of a node; what stands for each in a computation."""
        constants: dict[str, Any] = {}
        for name, value in _constants(node).items():
            learns = trainable and name in TRAINABLE.get(node.op, ())
            if not (learns or isinstance(value, np.ndarray)):
                constants[name] = value
                continue
            kind = torch.long if name == "columns" else self.dtype
            tensor = torch.tensor(np.array(value), dtype=kind)
            constants[name] = _Name(f"n{number}_{name}")
            if learns:
                self.register_parameter(constants[name], nn.Parameter(tensor))
            else:
                self.register_buffer(constants[name], tensor)
        return constants

    def forward(self, scores: Tensor) -> Tensor:
        """Calibrated probabilities, (n, K)."""
        values = [scores.to(self.dtype)]
        for op, args, constants in self._nodes:
            tensors = {
                name: getattr(self, value) if isinstance(value, _Name) else value
                for name, value in constants.items()
            }
            values.append(COMPUTE[op]([values[arg] for arg in args], tensors))
        return values[-1].to(scores.dtype)


class _Name(str):
    """The name of a buffer or parameter, in the place of a constant."""

    __slots__ = ()


def _constants(node: Node) -> dict[str, Any]:
    if node.op != "interpolate":
        return dict(node.constants)
    starts, heights, slopes = segments(node.constants["x"], node.constants["y"])
    points = np.asarray(node.constants["x"])
    return {"x": points, "starts": starts, "heights": heights, "slopes": slopes}


def as_module(program: Program, dtype: str, trainable: bool) -> CalibratorModule:
    """The module of a program."""
    return CalibratorModule(program, getattr(torch, dtype), trainable)


def save_module(program: Program, path: Any) -> None:
    """Write the module as an exported program of PyTorch, for any number of rows."""
    module = as_module(program, "float64", False)
    example = torch.full((2, program.n_classes), 1.0 / program.n_classes, dtype=torch.float64)
    rows = torch.export.Dim("n", min=1)
    exported = torch.export.export(module, (example,), dynamic_shapes=({0: rows},))
    with written_aside(path) as aside, aside.open("wb") as file:
        torch.export.save(exported, file)
