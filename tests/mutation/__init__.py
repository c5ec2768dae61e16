"""A mutation runner: how many small faults in the code do the tests notice? See ``__main__``."""
