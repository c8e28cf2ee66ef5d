# SPDX-License-Identifier: LGPL-2.1-or-later
"""Where things are, for the tests of packages."""

import dataclasses
import os
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
SPEC = ROOT / "packaging" / "lccfs.spec"
MACROS_OF_FEDORA = ROOT / "tests" / "packages" / "fedora.macros"
PAGES = sorted(path for path in (ROOT / "docs" / "man").iterdir() if path.suffix in (".5", ".8"))
os.environ["LCCFS_CONFIG"] = ""  # /etc/lccfs/lccfs.conf is the machine's own


@dataclasses.dataclass
class Context:
    build: pathlib.Path = ROOT / "build-ci"
    work: pathlib.Path = ROOT / "build" / "packages"  # kept: the next run needs less time

    @property
    def bin(self):
        return self.build / "bin"


context = Context()
