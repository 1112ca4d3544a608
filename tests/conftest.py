"""Fixtures: seeded randomness, and real data where they are at hand."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Mapping
from functools import wraps
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import settings

from calibrant._validation._warnings import forget_warnings

# No time limits in tests, machines are noisy; the same examples in every run.
settings.register_profile("calibrant", deadline=None, derandomize=True, max_examples=50)
settings.load_profile("calibrant")

_ROOT = Path(__file__).resolve().parent.parent
_DATA = Path(os.environ.get("CALIBRANT_DATA", _ROOT.parent / "shared" / "data"))
_SHARED_GOLDEN = _DATA.parent / "golden" / "golden.json"
_GOLDEN = Path(__file__).parent / "golden"


def _missing(path: Path, what: str | None = None) -> None:
    """Skip, or fail where the data are required."""
    message = (
        f"not at hand: {what or path.name}; set CALIBRANT_DATA to the folder of real predictions "
        f"to run this test"
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


class _References(dict[str, Any]):
    """Figures by data set; one that is not at hand skips the test that asks for it."""

    def __missing__(self, name: str) -> Any:
        _missing(_SHARED_GOLDEN, f"the figures of {name!r} in {_SHARED_GOLDEN.name}")


@pytest.fixture(scope="session")
def reference() -> Mapping[str, Any]:
    """What the authors' own code printed, by data set: our copy first, then what belongs to data
    that are kept elsewhere.
    """
    found = _References()
    for path in (_SHARED_GOLDEN, _GOLDEN / "golden.json"):
        if path.exists():
            found.update(json.loads(path.read_text()))
    return found


@pytest.fixture(scope="session")
def probcal_golden() -> Callable[[str], Any]:
    """``probcal_golden("noisy_self_p")``: a table that the R package probcal read or wrote."""

    def load(name: str) -> Any:
        return np.loadtxt(_GOLDEN / "probcal" / f"{name}.csv", delimiter=",")

    return load


@pytest.fixture(scope="session")
def probcal_reference(reference: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters and metrics that probcal printed, and the tight optima beside them."""
    return reference["probcal_R"]


class CallCounter:
    """Counts the calls of functions, which go on as before: cost without a clock."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch
        self._calls: Counter[str] = Counter()

    def watch(self, owner: Any, name: str) -> None:
        """Count the calls of ``owner.name``."""
        function = getattr(owner, name)

        @wraps(function)
        def counted(*args: Any, **kwargs: Any) -> Any:
            self._calls[name] += 1
            return function(*args, **kwargs)

        self._monkeypatch.setattr(owner, name, counted)

    def __getitem__(self, name: str) -> int:
        return self._calls[name]


@pytest.fixture(autouse=True)
def _every_remark() -> None:
    """Warnings that a process gives once are given once per test."""
    forget_warnings()


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> CallCounter:
    """``calls.watch(module, "function")``, then ``calls["function"]`` is how often it ran."""
    return CallCounter(monkeypatch)
