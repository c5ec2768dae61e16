"""Execution of the tasks of a copy on a Dask cluster."""
