"""The output container of `predict_proba`: arrays or data frames."""

from __future__ import annotations

from typing import Literal, Self

from calibrant._validation import check_option


class FrameOutput:
    """Mixin with ``set_output`` for estimators with ``predict_proba``."""

    def set_output(
        self, *, transform: Literal["default", "pandas", "polars"] | None = None
    ) -> Self:
        """Set the output container of `predict_proba`.

        Parameters
        ----------
        transform : {"default", "pandas", "polars"}, optional
            "default" means a NumPy array. A pandas frame has the index of the input. None leaves
            the container unchanged.

        Returns
        -------
        self
        """
        if transform is not None:
            check_option(transform, "transform", ("default", "pandas", "polars"))
            # `sklearn.base.clone` copies the attribute of this name.
            self._sklearn_output_config = {"transform": transform}
        return self

    @property
    def _output(self) -> str:
        return str(getattr(self, "_sklearn_output_config", {}).get("transform", "default"))
