"""``python -m zarrfs`` is the ``zarrfs`` command."""

from zarrfs.cli.main import run

if __name__ == "__main__":
    run()
