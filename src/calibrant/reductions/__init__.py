"""From many classes to one claim at a time: any binary calibrator, lifted to any notion."""

from calibrant.reductions._reduction import MulticlassToBinary

__all__ = ["MulticlassToBinary"]
