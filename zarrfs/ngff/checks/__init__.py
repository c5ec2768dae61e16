"""The offline check of OME-NGFF metadata, in three tiers.

- ``schema``: what the JSON schemas of the specification demand; it alone makes a document invalid.
- ``strict``: what they recommend.
- ``semantic``: what the specification's text demands beyond its schemas, and whether the store holds what the
  document says.
"""

from zarrfs.ngff.checks.report import Message, Report, Tier
from zarrfs.ngff.checks.run import check_attributes, check_node

__all__ = ["Message", "Report", "Tier", "check_attributes", "check_node"]
