"""Data types: subclass ``DataTypeFamily`` and register an instance."""

from __future__ import annotations

from zarrfs.engine.dtypes.base import DataType, DataTypeFamily

__all__ = ["DataType", "DataTypeFamily"]
