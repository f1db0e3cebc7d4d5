"""Rows that we write are read back by `csv`, whatever their texts hold."""

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.csv_rows import row_writer

FIELDS = st.lists(st.text(st.sampled_from('a,"\t\r\n |'), max_size=6), min_size=2, max_size=4)


@pytest.mark.parametrize("separator", [",", "\t"])
@given(rows=st.lists(FIELDS, min_size=1, max_size=4))
def test_every_field_is_read_back(separator, rows):
    file = io.StringIO(newline="")
    row_writer(file, separator).writerows(rows)
    text = file.getvalue()
    assert list(csv.reader(io.StringIO(text, newline=""), delimiter=separator)) == rows


def test_lines_end_with_lf_and_a_lone_cr_is_quoted():
    file = io.StringIO(newline="")
    row_writer(file, ",").writerows([["one\rtwo", "b"], ["c", "d"]])
    assert file.getvalue() == '"one\rtwo",b\nc,d\n'
