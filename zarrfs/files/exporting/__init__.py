"""Writing arrays to files of other formats. The bytes are those of the files that a mount presents."""

from zarrfs.files.exporting.export import SUFFIXES, export

__all__ = ["SUFFIXES", "export"]
