"""Text tables line up."""

from reports.tables import text_table


def test_columns_are_as_wide_as_their_widest_cell_and_figures_stand_right():
    table = text_table(["task", "dev"], [["sst", "0.5"], ["similarity", "12.25"]])
    assert table.splitlines() == [
        "task          dev",
        "----------  -----",
        "sst           0.5",
        "similarity  12.25",
    ]
