"""Named views and their JSON form."""
