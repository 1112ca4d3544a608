"""Type aliases that all modules share."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

FloatArray: TypeAlias = npt.NDArray[Any]
IntArray: TypeAlias = npt.NDArray[np.intp]
BoolArray: TypeAlias = npt.NDArray[np.bool_]
AnyArray: TypeAlias = npt.NDArray[Any]

# Types that users can pass: arrays, nested lists, data frames, torch tensors, memory maps.
ScoresLike: TypeAlias = Any
LabelsLike: TypeAlias = Any
WeightsLike: TypeAlias = Any

Inputs: TypeAlias = Literal["proba", "logits", "log_proba"]
Rng: TypeAlias = int | np.random.Generator | None
