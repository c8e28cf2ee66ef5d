#compdef lccfs lccfs-fuse lccfs-gc lccfs-fsck
# SPDX-License-Identifier: LGPL-2.1-or-later
# zsh completion for the LCCFS programs. As in lccfs.bash, commands and options are those that --help shows.

# What --help of these words lists: lines that begin with "-", or the words under "Commands".
_lccfs_options() {
    "$@" --help 2>/dev/null | sed -nE 's/^  (-[A-Za-z],)?(--[a-z-]+).*/\2/p; s/^  (-[A-Za-z]),.*/\1/p'
}
_lccfs_commands() {
    "$1" --help 2>/dev/null | sed -nE '/^Commands/,/^$/s/^  ([a-z]+) .*/\1/p'
}

_lccfs() {
    local program=$words[1] previous=$words[CURRENT-1] word
    local -a command
    if [[ ${program:t} == lccfs ]]; then
        for word in $words[2,CURRENT-1]; do
            [[ $word == -* ]] || { command=($word) && break; }
        done
        if (( ! $#command )) && [[ $PREFIX != -* ]]; then
            compadd -- ${(f)"$(_lccfs_commands $program)"}
            return
        fi
    fi
    if [[ $PREFIX == --*=* ]]; then
        previous=${PREFIX%%=*}
        compset -P '*='
    fi
    case $previous in
        -c | --conf | --log-file | --make) _files; return ;;
        -m | --mountpoint | --local) _files -/; return ;;
        -p | --pool | --data-pool) compadd -- ${(f)"$(timeout 3 ceph osd pool ls 2>/dev/null)"}; return ;;
        --log-level) compadd -- debug info warning error; return ;;
    esac
    if [[ $PREFIX == -* ]]; then
        compadd -- ${(f)"$(_lccfs_options $program $command)"}
    else
        _files
    fi
}

_lccfs "$@"
