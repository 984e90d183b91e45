"""Rows in partitions of Dask, worked on where they are."""
