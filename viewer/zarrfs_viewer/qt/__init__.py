"""All of the viewer that imports Qt: thin widgets over the pure core in ``viewer``."""
