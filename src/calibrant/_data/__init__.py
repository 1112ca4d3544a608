"""Rows of scores and labels: arrays, chunks and top scores behind one interface, `Sample`."""
