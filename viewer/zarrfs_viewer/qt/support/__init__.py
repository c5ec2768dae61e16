"""Qt helpers that several panels share."""
