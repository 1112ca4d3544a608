"""What a calibrator declares about its method.

Every property has a default. A method overrides it by a class attribute if the value is constant,
else by a property that depends on its parameters.
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
        """Whether the method counts rows, so that weight 2 is not the row twice: it leaves whole
        rows out, or assigns them to folds. Composites (`CrossFitted`, `AutoCalibration`, `compare`)
        pass such methods integer weights as copies.
        """
        return False

    @property
    def check_exceptions(self) -> Mapping[str, str]:
        """Checks of `calibrant.testing.check_calibrator` that the method cannot pass, with the
        reason. What `counts_rows` excuses need not be repeated.
        """
        return {}

    @property
    def fitted_values(self) -> Mapping[str, FittedValue]:
        """Shapes and ranges of fitted attributes, by name: `calibrant.load` rejects a file in which
        they differ. Attributes that are not named are read as they are.
        """
        return {}

    @property
    def citation(self) -> Citation:
        """What the method is called in a sentence, and who is cited for it, for `cite`."""
        return Citation(type(self).__name__)

    @property
    def _takes_logarithms(self) -> bool:
        """Whether scores of zero need a floor."""
        return False

    def __dir__(self) -> list[str]:
        """Names without those that only authors of methods need, for completion."""
        return [name for name in super().__dir__() if name not in _FOR_AUTHORS]


_FOR_AUTHORS = frozenset(
    {name for name in vars(Declarations) if not name.startswith("_")} - {"citation"}
) | {"form", "remedies"}
