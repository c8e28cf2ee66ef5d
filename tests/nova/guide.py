# SPDX-License-Identifier: LGPL-2.1-or-later
"""What docs/guide/nova.md says of nova.conf. The nodes of these tests are set up by it."""

import configparser
import pathlib
import re
import textwrap

GUIDE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "guide" / "nova.md"
INSTANCES_PATH = "/var/lib/nova/instances"


def settings(instances_path):
    """(section, key, value) of the guide's example, and of what its text names beside that: [libvirt] has it."""
    text = re.search(r"^## nova\.conf\n(.*?)^## ", GUIDE.read_text(encoding="utf-8"), re.M | re.S)[1]
    example = configparser.ConfigParser(default_section="", interpolation=None)
    example.read_string(textwrap.dedent("".join(re.findall(r"^(?: {4}.*)?\n", text, re.M))))
    found = {(section, key): value for section in example.sections() for key, value in example[section].items()}
    for key, value in re.findall(r"`(\w+) = (\S+)`", text):
        found.setdefault(("libvirt", key), value)
    return [(section, key, value.replace(INSTANCES_PATH, instances_path)) for (section, key), value in found.items()]
