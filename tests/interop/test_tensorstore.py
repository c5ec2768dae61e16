"""zarrfs and TensorStore read each other's arrays with equal bits."""

from __future__ import annotations

import pytest

from tests.interop import ours, tensorstore_peer
from tests.interop.samples import same_bits
from tests.interop.tensorstore_peer import Case

MATRIX = [*tensorstore_peer.cases_v2(), *tensorstore_peer.cases_v3()]


def test_the_matrix_is_complete_and_its_names_are_unique() -> None:
    assert len(MATRIX) > 4000
    assert len({str(case) for case in MATRIX}) == len(MATRIX)


@pytest.mark.parametrize("case", MATRIX, ids=str)
def test_each_implementation_reads_what_the_other_wrote(case: Case) -> None:
    theirs = tensorstore_peer.write(case)
    assert same_bits(ours.read(theirs), case.data), "zarrfs reads other values than TensorStore wrote"
    if case.readable:
        written = ours.rewrite(theirs, case.data)
        found = tensorstore_peer.read(written, case.driver)
        assert same_bits(found, case.data), "TensorStore reads other values than zarrfs wrote"
