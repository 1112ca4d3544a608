"""Properties that a calibrator declares about its method.

Every property has a default. A subclass overrides a property with a class attribute if the value is
constant, else with a property that depends on its parameters.
"""

from __future__ import annotations

from collections.abc import Mapping

from calibrant.base._citation import Citation
from calibrant.base.fitted import FittedValue


class Declarations:
    """Declared properties of a method, with their defaults."""

    @property
    def needs_rows(self) -> bool:
        """Whether the method needs all rows in memory, so it cannot be fitted to chunked data."""
        return False

    @property
    def counts_rows(self) -> bool:
        """Whether a weight of 2 differs from duplicating the row.

        The value is True for methods that exclude single rows or assign rows to folds. Composites
        (`CrossFitted`, `AutoCalibration`, `compare`) duplicate rows with integer weights for such
        methods.
        """
        return False

    @property
    def check_exceptions(self) -> Mapping[str, str]:
        """Checks of `calibrant.testing.check_calibrator` that the method cannot pass, with reasons.

        Checks that `counts_rows` excludes need not be repeated.
        """
        return {}

    @property
    def fitted_values(self) -> Mapping[str, FittedValue]:
        """Shapes and ranges of fitted attributes, by name.

        `calibrant.load` rejects a file with other shapes or ranges. Attributes without a
        declaration are not checked.
        """
        return {}

    @property
    def citation(self) -> Citation:
        """The name of the method in a sentence, and its references, for `cite`."""
        return Citation(type(self).__name__)

    @property
    def _takes_multilabel(self) -> bool:
        """Whether the method can be fitted to several labels per row."""
        return False

    @property
    def _takes_logarithms(self) -> bool:
        """Whether scores of zero need a floor."""
        return False

    def __dir__(self) -> list[str]:
        """Return names for completion, without names that only authors of new methods need."""
        return [name for name in super().__dir__() if name not in _FOR_AUTHORS]


_FOR_AUTHORS = frozenset(
    {name for name in vars(Declarations) if not name.startswith("_")} - {"citation"}
) | {"form", "remedies"}
