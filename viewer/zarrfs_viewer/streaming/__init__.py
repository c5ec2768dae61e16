"""Loading of tiles by background worker threads."""
