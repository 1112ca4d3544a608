"""What leaves the library: files that are whole or not there, progress on a terminal, results in a
notebook. It knows nothing of what they hold.
"""
