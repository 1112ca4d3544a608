"""The few hot loops. ``_numpy`` is the definition of each; a compiled twin must give the same
numbers.
"""

from calibrant._kernels._numpy import cell_sums, entries, ordered_pairs, top_labels

__all__ = ["cell_sums", "entries", "ordered_pairs", "top_labels"]
