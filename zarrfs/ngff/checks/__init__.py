"""The offline check of OME-NGFF metadata, in three tiers.

- ``schema``: the JSON schemas of the specification. These findings are errors, which make a document invalid.
- ``strict``: the strict JSON schemas, which cover recommendations. These findings are warnings.
- ``semantic``: requirements of the specification's text beyond its schemas, and consistency of document and store.
  These findings are warnings, except two kinds that only the store shows: levels that do not overlap, and
  transformations between coordinate systems (0.6) that cannot be used.
"""

from zarrfs.ngff.checks.report import Message, Report, Tier
from zarrfs.ngff.checks.run import check_attributes, check_node

__all__ = ["Message", "Report", "Tier", "check_attributes", "check_node"]
