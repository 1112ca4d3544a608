"""Optimisation: score maps, log-loss, penalties and solvers. Knows arrays, not estimators."""
