"""The offline check of OME-NGFF metadata, in three tiers.

- ``schema``: the JSON schemas of the specification. Only these findings make a document invalid.
- ``strict``: the strict JSON schemas, which cover recommendations.
- ``semantic``: requirements of the specification's text beyond its schemas, and consistency of document and store.
"""

from zarrfs.ngff.checks.report import Message, Report, Tier
from zarrfs.ngff.checks.run import check_attributes, check_node

__all__ = ["Message", "Report", "Tier", "check_attributes", "check_node"]
