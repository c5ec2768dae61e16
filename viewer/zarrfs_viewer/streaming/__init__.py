"""Loading of tiles by background workers."""
