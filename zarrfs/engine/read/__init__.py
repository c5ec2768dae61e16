"""Reading: the plan, its execution, one chunk, and the flat stream of an array."""
