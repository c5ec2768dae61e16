"""Qt helpers that several panels use."""
