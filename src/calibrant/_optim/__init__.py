"""Maps, losses, penalties, solvers: they know arrays, not estimators."""
