"""Opening and creating arrays by TensorStore specs, with the options and defaults of TensorStore.

``open`` takes a spec (``{"driver": "zarr3", "kvstore": ...}``) and returns an ``Array``. TensorStore itself is not
needed.
"""

from zarrfs.tensorstore.context import Context
from zarrfs.tensorstore.opening import open

__all__ = ["Context", "open"]
