"""zarrfs and TensorStore read each other's arrays with equal bits."""

from __future__ import annotations

import pytest

from tests.interop import ours, tensorstore_peer
from tests.interop.samples import all_pairs, pairwise, same_bits
from tests.interop.tensorstore_peer import Case

TABLES = tensorstore_peer.tables()
MATRIX = [case for table in TABLES for case in pairwise(table)]


def test_each_pair_of_factors_occurs_and_the_names_are_unique() -> None:
    assert sum(map(len, TABLES)) > 4000
    assert all_pairs(MATRIX) == all_pairs(case for table in TABLES for case in table)
    assert len({str(case) for case in MATRIX}) == len(MATRIX)


@pytest.mark.parametrize("case", MATRIX, ids=str)
def test_each_implementation_reads_what_the_other_wrote(case: Case) -> None:
    theirs = tensorstore_peer.write(case)
    assert same_bits(ours.read(theirs), case.data), "zarrfs reads other values than TensorStore wrote"
    if case.readable:
        written = ours.rewrite(theirs, case.data)
        found = tensorstore_peer.read(written, case.driver)
        assert same_bits(found, case.data), "TensorStore reads other values than zarrfs wrote"
