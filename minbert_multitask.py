"""The program `minbert`, and the check that Python finds this project's packages, not others.

The packages have short names, such as `tasks`, which other files may have, too. This module has the
name of the project and imports only the standard library at module level, so it is always found.
"""

import sys
from importlib.util import find_spec
from pathlib import Path

# Each package imports only packages after it, and not all of these: see tests/test_imports.py.
PACKAGES = (
    *("cli", "serving", "studies", "reports", "ensemble", "pretrain"),
    *("multitask", "tasks", "losses", "minbert", "common"),
)
PLACE = Path(__file__).resolve().parent


class OtherModuleError(ImportError):
    """Another module with the name of one of the packages is found before it."""


def check_packages(importing: str) -> None:
    """Check that Python finds this project's packages which `importing` may import.

    Raise OtherModuleError with one line that names the file that is found instead.
    """
    for name in PACKAGES[PACKAGES.index(importing) :]:
        spec = find_spec(name)
        found = [spec.origin, *(spec.submodule_search_locations or ())] if spec else []
        if str(PLACE / name) not in (str(Path(one).resolve()) for one in found if one):
            raise OtherModuleError(
                f"{name}: expected the package {PLACE / name}, found "
                f"{next(filter(None, found), 'none')}, which Python finds first: rename that file "
                "or folder, or start Python in another folder"
            )


def main() -> None:
    """Run the command line and exit the process."""
    try:
        check_packages("cli")
    except OtherModuleError as error:
        sys.exit(f"minbert: {error}")
    from cli import main
    from common.entry_point import program, start

    start(program(), lambda: main(sys.argv[1:]))


if __name__ == "__main__":
    main()
