"""Fits on some rows judged on others: members that are fitted, and the scores of what they
predict.
"""
