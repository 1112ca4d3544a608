"""The publications to cite for each calibrator, which docstrings also cite."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Reference:
    """A publication.

    See Also
    --------
    Citation : The name of a method and its references.

    Examples
    --------
    >>> Reference("Guo et al.", 2017, "On calibration of modern neural networks", "ICML").short
    'Guo et al. 2017'
    """

    authors: str
    year: int
    title: str
    where: str

    @property
    def short(self) -> str:
        """Authors and year, as cited in a sentence."""
        return f"{self.authors} {self.year}"

    @property
    def full(self) -> str:
        """The entry in a list of references."""
        return f"{self.authors} ({self.year}), {self.title}, {self.where}."


BERTA_2025 = Reference(
    "Berta, Holzmüller, Jordan & Bach",
    2025,
    "Structured matrix scaling for multi-class calibration",
    "preprint",
)
GUO_2017 = Reference(
    "Guo et al.", 2017, "On calibration of modern neural networks", "ICML, arXiv:1706.04599"
)
GUPTA_2021 = Reference(
    "Gupta et al.",
    2021,
    "Calibration of neural networks using splines",
    "ICLR, arXiv:2006.12800",
)
GUPTA_RAMDAS_2021 = Reference(
    "Gupta & Ramdas",
    2021,
    "Distribution-free calibration guarantees for histogram binning without sample splitting",
    "ICML, arXiv:2105.04656",
)
GUPTA_RAMDAS_2022 = Reference(
    "Gupta & Ramdas",
    2022,
    "Top-label calibration and multiclass-to-binary reductions",
    "ICLR, arXiv:2107.08353",
)
KULL_2017 = Reference(
    "Kull, Silva Filho & Flach",
    2017,
    "Beta calibration",
    "AISTATS, PMLR 54:623-631",
)
KULL_2019 = Reference(
    "Kull et al.",
    2019,
    "Beyond temperature scaling: obtaining well-calibrated multi-class probabilities with "
    "Dirichlet calibration",
    "NeurIPS, arXiv:1910.12656",
)
LIN_2007 = Reference(
    "Lin, Lin & Weng",
    2007,
    "A note on Platt's probabilistic outputs for support vector machines",
    "doi:10.1007/s10994-007-5018-6",
)
NAEINI_2015 = Reference(
    "Naeini, Cooper & Hauskrecht",
    2015,
    "Obtaining well calibrated probabilities using Bayesian binning",
    "AAAI, doi:10.1609/aaai.v29i1.9602",
)
PLATT_1999 = Reference(
    "Platt",
    1999,
    "Probabilistic outputs for support vector machines",
    "in Advances in Large Margin Classifiers",
)
VOVK_PETEJ_2014 = Reference("Vovk & Petej", 2014, "Venn-Abers predictors", "UAI, arXiv:1211.0025")
WENGER_2020 = Reference(
    "Wenger, Kjellström & Triebel",
    2020,
    "Non-parametric calibration for classification",
    "AISTATS, arXiv:1906.04933",
)
WOLPERT_1992 = Reference(
    "Wolpert", 1992, "Stacked generalization", "doi:10.1016/S0893-6080(05)80023-1"
)
ZADROZNY_ELKAN_2001 = Reference(
    "Zadrozny & Elkan",
    2001,
    "Obtaining calibrated probability estimates from decision trees and naive Bayesian classifiers",
    "ICML",
)
ZADROZNY_ELKAN_2002 = Reference(
    "Zadrozny & Elkan",
    2002,
    "Transforming classifier scores into accurate multiclass probability estimates",
    "doi:10.1145/775047.775151",
)
ZHANG_2020 = Reference(
    "Zhang, Kailkhura & Han",
    2020,
    "Mix-n-Match: ensemble and compositional methods for uncertainty calibration in deep learning",
    "ICML, arXiv:2003.07329",
)
