"""The command `--mode reproduce` within this process."""

from collections.abc import Callable

import pytest

import cli


@pytest.fixture
def reproducing(tmp_path, capsys) -> Callable[..., Callable]:
    """`reproducing("lacon", flags)(more flags)` is the exit status and what was said."""

    def of(table: str, *flags: object) -> Callable:
        place = ("--results", tmp_path / table.replace("-", "_"), "--runs", tmp_path / "runs")

        def call(*argv: object) -> tuple[int, object]:
            command = ("--mode", "reproduce", "--table", table, *flags, *place, *argv)
            try:
                status = cli.main([str(flag) for flag in command])
            except SystemExit as ended:
                status = ended.code
            return status, capsys.readouterr()

        return call

    return of
