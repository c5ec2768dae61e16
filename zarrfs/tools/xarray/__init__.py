"""The xarray backend."""
