# SPDX-License-Identifier: LGPL-2.1-or-later
"""Who has a file open, and what its writers tell them (docs/DATA.md sections 9 and 12)."""
