# SPDX-License-Identifier: LGPL-2.1-or-later
"""Locks of a file between clients (docs/LOCKS.md sections 2 and 3)."""
