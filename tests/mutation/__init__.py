"""A mutation runner: how many small faults in the code do the tests find_detecting_test? See ``__main__``."""
