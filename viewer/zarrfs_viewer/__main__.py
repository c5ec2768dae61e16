"""``python -m zarrfs_viewer``."""

from zarrfs_viewer.main import run

if __name__ == "__main__":
    run()
