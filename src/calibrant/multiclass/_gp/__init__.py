"""Internals of `GaussianProcessCalibration`: kernel, bound, and the search for its parameters."""
