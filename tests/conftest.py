"""Fixtures: seeded randomness, and real data where they are at hand."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import settings

# No time limits in tests, machines are noisy; the same examples in every run.
settings.register_profile("calibrant", deadline=None, derandomize=True)
settings.load_profile("calibrant")

_ROOT = Path(__file__).resolve().parent.parent
_DATA = Path(os.environ.get("CALIBRANT_DATA", _ROOT.parent / "shared" / "data"))
_GOLDEN = _DATA.parent / "golden"


def _missing(path: Path) -> None:
    """Skip, or fail where the data are required."""
    message = (
        f"{path.name} is not at hand; set CALIBRANT_DATA to the folder of real predictions to run "
        f"this test"
    )
    if os.environ.get("CALIBRANT_REQUIRE_DATA"):
        pytest.fail(message)
    pytest.skip(message)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20261115)


@pytest.fixture(scope="session")
def real_data() -> Callable[[str], Mapping[str, Any]]:
    """``real_data("cifar10_resnet50_gupta")``: the arrays of a file of real predictions."""

    def load(name: str) -> Mapping[str, Any]:
        path = _DATA / f"{name}.npz"
        if not path.exists():
            _missing(path)
        with np.load(path, allow_pickle=False) as file:
            return {key: file[key] for key in file.files}

    return load


@pytest.fixture(scope="session")
def reference() -> dict[str, Any]:
    """What the authors' own code printed on the real data."""
    path = _GOLDEN / "golden.json"
    if not path.exists():
        _missing(path)
    return json.loads(path.read_text())


@pytest.fixture(scope="session")
def probcal_golden() -> Callable[[str], Any]:
    """``probcal_golden("noisy_self_p")``: a table that the R package probcal read or wrote."""
    folder = Path(__file__).parent / "golden" / "probcal"

    def load(name: str) -> Any:
        return np.loadtxt(folder / f"{name}.csv", delimiter=",")

    return load


@pytest.fixture(scope="session")
def probcal_reference() -> dict[str, Any]:
    """Parameters and metrics that probcal printed, and the tight optima beside them."""
    return json.loads((Path(__file__).parent / "golden" / "probcal" / "probcal.json").read_text())
