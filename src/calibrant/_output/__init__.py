"""Write files atomically, show progress and results, and format numbers.

These modules do not depend on the content that they write or show.
"""
