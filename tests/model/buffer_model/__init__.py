# SPDX-License-Identifier: LGPL-2.1-or-later
"""The write buffer, and leases that outlive a close (docs/DATA.md sections 2, 3, 4, 7 and 10)."""
