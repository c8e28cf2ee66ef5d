# SPDX-License-Identifier: LGPL-2.1-or-later
"""Names and directories (docs/ORDERING.md sections 3 to 6 and 8): pairs of operations, faults, collectors,
readers."""
