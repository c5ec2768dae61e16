"""The values of arrays as tables and curves, and those around the pointer."""
