"""The choice of what `predict_proba` returns: arrays or frames."""

from __future__ import annotations

from typing import Literal, Self

from calibrant._validation import check_option


class FrameOutput:
    """``set_output`` of everything that has ``predict_proba``."""

    def set_output(
        self, *, transform: Literal["default", "pandas", "polars"] | None = None
    ) -> Self:
        """Choose what `predict_proba` returns: "default" (NumPy), "pandas" or "polars" frames with
        the index of the input.
        """
        if transform is not None:
            check_option(transform, "transform", ("default", "pandas", "polars"))
            self._sklearn_output_config = {
                "transform": transform
            }  # the name that sklearn.base.clone copies
        return self

    @property
    def _output(self) -> str:
        return str(getattr(self, "_sklearn_output_config", {}).get("transform", "default"))
