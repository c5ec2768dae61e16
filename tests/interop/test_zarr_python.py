"""zarrfs and zarr-python read each other's arrays with equal bits."""

from __future__ import annotations

import pytest

from tests.interop import ours, zarr_python
from tests.interop.samples import all_pairs, pairwise, same_bits
from tests.interop.zarr_python import Case

TABLES = zarr_python.tables()
MATRIX = [case for table in TABLES for case in pairwise(table)]


def test_each_pair_of_factors_occurs_and_the_names_are_unique() -> None:
    assert sum(map(len, TABLES)) > 4000
    assert all_pairs(MATRIX) == all_pairs(case for table in TABLES for case in table)
    assert len({str(case) for case in MATRIX}) == len(MATRIX)


@pytest.mark.parametrize("case", MATRIX, ids=str)
def test_each_implementation_reads_what_the_other_wrote(case: Case, caplog: pytest.LogCaptureFixture) -> None:
    theirs = zarr_python.write(case)
    expected = zarr_python.read(theirs) if case.lossy else case.data
    assert same_bits(ours.read(theirs), expected), "zarrfs reads other values than zarr-python wrote"
    if case.readable:
        written = ours.rewrite(theirs, case.data)
        assert same_bits(zarr_python.read(written), expected), (
            "zarr-python reads other values than zarrfs wrote"
        )
    # zarr-python does not write the byte order of structured data types. No other warning is expected.
    assert all('has no "endian"; structured elements' in message for message in caplog.messages)
    assert isinstance(case.dtype, list) or not caplog.messages
