"""Binary calibrators for any type of calibration of a multiclass problem."""

from calibrant.reductions._reduction import MulticlassToBinary

__all__ = ["MulticlassToBinary"]
