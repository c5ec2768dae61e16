"""Writing the selected values of an array to a stream or file of another format."""
