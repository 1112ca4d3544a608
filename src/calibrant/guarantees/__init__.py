r"""Distribution-free guarantees of binning calibrators and of decisions for new data.

`SelectiveGuarantee` and `CoverageGuarantee` are results of `calibrant.decisions`, with the
`Certificate` of their proof. The other classes concern binning calibrators.
``calibrator.guarantee(alpha)`` of a fitted binning calibrator returns a `Guarantee` or a
`CanonicalGuarantee`. Outcomes in a bin are independent draws with the same probability. The number
of outcomes 1 therefore bounds the true frequency, without any assumption on the distribution.

All guarantees assume that new cases are drawn like the calibration rows and that these rows are
independent of each other. All guarantees also assume that the model was neither trained nor
selected on these rows. The library cannot check the last two assumptions. With duplicated rows, or
a model that was trained on the rows, the bounds are too narrow.

References
----------
Gupta & Ramdas (2022), Top-label calibration and multiclass-to-binary reductions, Theorems 1 and 2,
arXiv:2107.08353. Clopper & Pearson (1934), The use of confidence or fiducial limits,
doi:10.1093/biomet/26.4.404. Podkopaev & Ramdas (2021), Distribution-free uncertainty quantification
under label shift, Theorem 3, arXiv:2103.03323.
"""

from calibrant.guarantees._bins import BinnedClaim as BinnedClaim
from calibrant.guarantees._bins import BinnedQuantity as BinnedQuantity
from calibrant.guarantees._bins import binning_guarantee as binning_guarantee
from calibrant.guarantees._bins import canonical_guarantee as canonical_guarantee
from calibrant.guarantees._bins import check_alpha as check_alpha
from calibrant.guarantees._bins import check_deployed as check_deployed
from calibrant.guarantees._bins import check_unweighted as check_unweighted
from calibrant.guarantees._bins import tied_edges as tied_edges
from calibrant.guarantees._bounds import clopper_pearson as clopper_pearson
from calibrant.guarantees._bounds import multinomial_radius as multinomial_radius
from calibrant.guarantees._certificate import Certificate
from calibrant.guarantees._certificate import certify as certify
from calibrant.guarantees._decisions import CoverageGuarantee, SelectiveGuarantee
from calibrant.guarantees._results import (
    BinInterval,
    CanonicalGuarantee,
    Guarantee,
    QuantityBounds,
)

__all__ = [
    "BinInterval",
    "CanonicalGuarantee",
    "Certificate",
    "CoverageGuarantee",
    "Guarantee",
    "QuantityBounds",
    "SelectiveGuarantee",
]


def __dir__() -> list[str]:
    return __all__
