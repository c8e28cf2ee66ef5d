# bash completion for the LCCFS programs                   -*- shell-script -*-
# SPDX-License-Identifier: LGPL-2.1-or-later
# Commands and options are those that --help shows, so that there is no list here to keep in step.

# What --help of these words lists: lines that begin with "-", or the words under "Commands".
_lccfs_options() {
    "$@" --help 2>/dev/null | sed -nE 's/^  (-[A-Za-z],)?(--[a-z-]+).*/\2/p; s/^  (-[A-Za-z]),.*/\1/p'
}
_lccfs_commands() {
    "$1" --help 2>/dev/null | sed -nE '/^Commands/,/^$/s/^  ([a-z]+) .*/\1/p'
}

_lccfs() {
    local cur prev words cword split program command=() word
    _init_completion -s || return
    program=${words[0]}
    if [[ ${program##*/} == lccfs ]]; then
        for word in "${words[@]:1:cword-1}"; do
            [[ $word == -* ]] || { command=("$word") && break; }
        done
        if [[ ${#command[@]} -eq 0 && $cur != -* ]]; then
            mapfile -t COMPREPLY < <(compgen -W "$(_lccfs_commands "$program")" -- "$cur")
            return
        fi
    fi
    case $prev in
        -c | --conf | --log-file | --make) _filedir && return ;;
        -m | --mountpoint | --local) _filedir -d && return ;;
        -p | --pool | --data-pool)
            mapfile -t COMPREPLY < <(compgen -W "$(timeout 3 ceph osd pool ls 2>/dev/null)" -- "$cur")
            return
            ;;
        --log-level) mapfile -t COMPREPLY < <(compgen -W "debug info warning error" -- "$cur") && return ;;
    esac
    $split && return
    if [[ $cur == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$(_lccfs_options "$program" "${command[@]}")" -- "$cur")
    else
        _filedir
    fi
} && complete -F _lccfs lccfs lccfs-fuse lccfs-gc lccfs-fsck
