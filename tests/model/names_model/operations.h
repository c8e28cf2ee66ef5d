// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The operations of cases and sweeps, by short names: a, b and c are names in P, those in C end in _in_c.
#pragma once

#include "state.h"

namespace names_model {

constexpr Operation create_a{op_create, parent, 0, 0}, create_b{op_create, parent, 1, 0},
    mkdir_c{op_mkdir, parent, 2, 0}, unlink_a{op_unlink, parent, 0, 0}, unlink_b{op_unlink, parent, 1, 0},
    rmdir_c{op_rmdir, parent, 2, 0}, rename_a_b{op_rename, parent, 0, 1}, rename_b_a{op_rename, parent, 1, 0},
    rename_c_b{op_rename, parent, 2, 1}, lookup_a{op_lookup, parent, 0, 0}, lookup_b{op_lookup, parent, 1, 0},
    lookup_c{op_lookup, parent, 2, 0}, stat_a{op_stat, parent, 0, 0}, stat_b{op_stat, parent, 1, 0},
    chmod_a{op_chmod, parent, 0, 0}, chmod_b{op_chmod, parent, 1, 0}, open_a{op_open, parent, 0, 0},
    close_it{op_close, parent, 0, 0}, write_b{op_write, parent, 1, 0}, fsync_a{op_fsync_file, parent, 0, 0},
    fsync_b{op_fsync_file, parent, 1, 0}, fsync_p{op_fsync_directory, parent, 0, 0};

constexpr Operation create_a_in_c{op_create, child, 0, 0}, create_b_in_c{op_create, child, 1, 0},
    unlink_a_in_c{op_unlink, child, 0, 0}, unlink_b_in_c{op_unlink, child, 1, 0},
    rename_a_b_in_c{op_rename, child, 0, 1}, lookup_a_in_c{op_lookup, child, 0, 0},
    lookup_b_in_c{op_lookup, child, 1, 0}, stat_a_in_c{op_stat, child, 0, 0}, chmod_a_in_c{op_chmod, child, 0, 0},
    chmod_b_in_c{op_chmod, child, 1, 0}, fsync_a_in_c{op_fsync_file, child, 0, 0},
    fsync_c{op_fsync_directory, child, 0, 0};

// Into the other directory; the new name is the last word.
constexpr Operation link_a_b{op_link, parent, 0, 1}, move_a_b{op_move, parent, 0, 1}, move_a_a{op_move, parent, 0, 0},
    link_a_in_c_b{op_link, child, 0, 1}, move_a_in_c_b{op_move, child, 0, 1}, move_a_in_c_a{op_move, child, 0, 0};

}  // namespace names_model
