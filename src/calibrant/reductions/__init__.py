"""Binary calibrators for multiclass problems, for any type of calibration."""

from calibrant.reductions._reduction import MulticlassToBinary

__all__ = ["MulticlassToBinary"]
