"""Values at the pointer, measurements, statistics, and the chunk overlay."""
