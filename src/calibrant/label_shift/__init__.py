"""Adapt probabilities to other class frequencies (label shift).

`correct` applies class frequencies that you know, for example after under-sampling. `adapt`
estimates class frequencies from rows without labels.
"""

from calibrant.label_shift._adapt import LabelShift, adapt
from calibrant.label_shift._correct import correct

__all__ = ["LabelShift", "adapt", "correct"]


def __dir__() -> list[str]:
    return __all__
