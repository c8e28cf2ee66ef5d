# SPDX-License-Identifier: LGPL-2.1-or-later
"""Names and directories (docs/PROTOCOL.md sections 3 to 6): pairs of operations, faults, collectors,
readers."""
