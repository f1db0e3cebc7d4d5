"""Build hook that puts all packages of the tree into one package of the wheel.

An application may then have a `tasks.py` or `common/` of its own.
"""

import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PACKAGE = "minbert_multitask"


class OnePackage(BuildHookInterface[Any]):
    """Write the name of the one package in front of the imports of the packages in it.

    Hatchling moves the files (`sources` in pyproject.toml). An editable install stays as the tree.
    """

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Put a rewritten copy of each Python file into the wheel."""
        if version == "editable":
            return
        builder, scripts = self.build_config.builder, self.metadata.core.scripts
        packages = "|".join(builder.target_config["only-include"])
        # Only these two forms, also in examples of texts; a test finds other ones.
        imported = re.compile(
            rf'\bfrom (?=(?:{packages})\b[\w.]* import )|\bimport_module\("(?=(?:{packages})\b)'
        )
        self.copies = TemporaryDirectory()
        folder = Path(self.copies.name)
        files = {file.relative_path: file.path for file in builder.recurse_included_files()}
        for number, (place, path) in enumerate(files.items()):
            if place.endswith(".py"):
                text = imported.sub(rf"\g<0>{PACKAGE}.", Path(path).read_text("utf-8"))
                copy = folder / f"{number}.py"
                copy.write_text(text, "utf-8")
                build_data["force_include"][str(copy)] = place
        start = folder / "__init__.py"
        start.write_text(f'"""{self.metadata.core.description}."""\n', "utf-8")
        build_data["force_include"][str(start)] = "__init__.py"
        scripts.update({name: f"{PACKAGE}.{place}" for name, place in scripts.items()})

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the copies."""
        if version != "editable":
            self.copies.cleanup()
