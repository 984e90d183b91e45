"""Rows in partitions: on the workers of a Dask cluster, or one after the other here."""
