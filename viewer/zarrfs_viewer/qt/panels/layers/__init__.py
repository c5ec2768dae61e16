"""Further images as layers over the first one, or beside it, and the coordinate system in which they are displayed."""
