"""Cross-fitting: members that are fitted on some rows, and scores of their predictions on
others.
"""
