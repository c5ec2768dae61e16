"""Values under the pointer, measurements, statistics, chunk overlay."""
