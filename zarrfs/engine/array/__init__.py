"""Arrays: properties, indexing, views and changes of the shape."""
