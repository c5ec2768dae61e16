"""Specs of TensorStore: arrays opened and created by them, with the same options, defaults and errors that say which.

A program that describes its arrays by specs (``{"driver": "zarr3", "kvstore": ...}``) can hand them to ``open`` here
and gets an ``Array``. TensorStore itself is not needed.
"""

from zarrfs.tensorstore.context import Context
from zarrfs.tensorstore.opening import open

__all__ = ["Context", "open"]
