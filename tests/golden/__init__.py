"""Fits of small problems, kept as numbers, that changes of the code are held against."""
