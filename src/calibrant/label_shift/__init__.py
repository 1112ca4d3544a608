"""Label shift: adapt probabilities to other class frequencies.

`correct` applies class frequencies that you know, for example after under-sampling. `adapt`
estimates them from rows without labels.
"""

from calibrant.label_shift._adapt import LabelShift, adapt
from calibrant.label_shift._correct import correct

__all__ = ["LabelShift", "adapt", "correct"]


def __dir__() -> list[str]:
    return __all__
