"""What `GaussianProcessCalibration` alone needs: kernel, bound, and the search for its
parameters.
"""
