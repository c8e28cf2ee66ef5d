# SPDX-License-Identifier: LGPL-2.1-or-later
"""The reclaim queue, liveness polls and questions about open files (docs/PROTOCOL.md sections 2, 5 and 6)."""
