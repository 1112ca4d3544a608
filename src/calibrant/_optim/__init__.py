"""Score functions, log-loss, penalties and solvers.

These modules work on arrays, not on estimators.
"""
