# SPDX-License-Identifier: LGPL-2.1-or-later
"""The reclaim queue, roll calls and questions about open files (docs/ORDERING.md sections 2, 5 and 9)."""
