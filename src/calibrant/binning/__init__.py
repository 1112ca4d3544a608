"""Bins of scores, and tables of sums per bin that can be added.

A bin rule assigns each score of a claim (binary problem) to one of ``n_bins`` bins. `UniformBins`
have the same edges for all data. `Bins` are upper edges per claim, computed from the data
(``"quantile"``, ``"unique"``) or taken from a fitted calibrator. A `BinTable` contains sums over
rows. The tables of two data sets with the same bins can be added to get the table of all rows.
"""

from calibrant.binning._distinct import distinct_sums
from calibrant.binning._distinct import interpolated as interpolated
from calibrant.binning._distinct import pair_sums as pair_sums
from calibrant.binning._distinct import present_rows as present_rows
from calibrant.binning._distinct import sum_steps as sum_steps
from calibrant.binning._fill import bin_table, cell_index
from calibrant.binning._merge import least_rows as least_rows
from calibrant.binning._merge import merge_small_bins as merge_small_bins
from calibrant.binning._rules import BinRule as BinRule
from calibrant.binning._rules import Bins, HasBins, UniformBins, quantile_edges
from calibrant.binning._rules import place_scores as place_scores
from calibrant.binning._rules import quantile_ends as quantile_ends
from calibrant.binning._table import BinTable

__all__ = [
    "BinTable",
    "Bins",
    "HasBins",
    "UniformBins",
    "bin_table",
    "cell_index",
    "distinct_sums",
    "quantile_edges",
]


def __dir__() -> list[str]:
    return __all__
