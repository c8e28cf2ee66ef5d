#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# umount.lccfs unmounts as umount(8) says, and waits for the process that holds the mount's lock.
# Usage: umount_helper_test.sh PATH-OF-umount.lccfs
# Programs that it calls are played: umount, fusermount3, id, and flock, so that nothing waits. /proc is the mount.
set -eu
helper=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/bin" "$folder/lccfs"
lock=$folder/lccfs/$(awk '$5 == "/proc" { device = $3 } END { print device }' /proc/self/mountinfo)
failed=0

# play NAME COMMANDS: a program of that name.
play() {
  printf '#!/bin/sh\n%s\n' "$2" > "$folder/bin/$1"
  chmod +x "$folder/bin/$1"
}

# What a held lock answers: -n finds it held, then it is waited for in vain as often as `rounds` says.
held() {
  echo "$1" > "$folder/rounds"
  play flock "
    [ \"\$2\" != -n ] || exit 1
    rounds=\$(cat '$folder/rounds'); echo \$((rounds - 1)) > '$folder/rounds'
    [ \$rounds -gt 0 ] && exit 1
    $2"
}

# expect STATUS CALL LINES WORD...: called with these words, the helper unmounts by that call, ends with that status,
# and says so many lines.
expect() {
  wanted_status=$1 wanted_call=$2 wanted_lines=$3
  shift 3
  : > "$folder/call"
  printf '4711\n' > "$lock"
  status=0
  PATH="$folder/bin:/usr/bin:/bin" XDG_RUNTIME_DIR="$folder" "$helper" "$@" 2> "$folder/said" || status=$?
  call=$(cat "$folder/call")
  lines=$(wc -l < "$folder/said")
  [ "$status/$call/$lines" = "$wanted_status/$wanted_call/$wanted_lines" ] && return
  echo "umount.lccfs $*: status $status, $call, $lines lines, not $wanted_status, $wanted_call, $wanted_lines:" >&2
  cat "$folder/said" >&2
  failed=1
}

says() {
  grep -q -- "$1" "$folder/said" && return
  echo "not said: $1" >&2
  failed=1
}

play umount "{ printf umount; printf '<%s>' \"\$@\"; } > '$folder/call'"
play fusermount3 "{ printf fusermount3; printf '<%s>' \"\$@\"; } > '$folder/call'"
play id 'echo 0'
stored="echo stored >> '$lock'"

# It waits, and passes on what umount(8) gives.
held 0 "$stored"
expect 0 'umount<-i><-c></proc>' 0 /proc
expect 0 'umount<-i><-f><-n><-r><-v><-c></proc>' 0 /proc -f -n -r -v -t fuse.lccfs

# It says every time that it waits on, for whom, and how to stop.
held 3 "$stored"
expect 0 'umount<-i><-c></proc>' 3 /proc
says 'pid 4711'
says interrupt

# Ended without "stored": bytes may be lost.
held 1 true
expect 32 'umount<-i><-c></proc>' 2 /proc
says 'may not have stored'

# A lazy unmount waits for nothing; nor does one of which nobody serves anything any more. Both are said.
held 1000 false
expect 0 'umount<-i><-l><-c></proc>' 1 /proc -l
play flock 'exit 0'
expect 0 'umount<-i><-c></proc>' 1 /proc
says 'not waiting'

# The same for what is no mount, by any name.
expect 0 "umount<-i><$folder/no mount>" 1 "$folder/no mount"

# Whoever is not root.
held 0 "$stored"
play id 'echo 1000'
expect 0 'fusermount3<-u></proc>' 0 /proc
expect 0 'fusermount3<-u><-z></proc>' 1 /proc -l
play id 'echo 0'

# What umount answers is the answer; then nothing is waited for.
held 1000 false
play umount "echo umount > '$folder/call'; exit 16"
expect 16 umount 0 /proc
play umount "echo umount > '$folder/call'"

# A lock that cannot be waited for is not waited for.
play flock '[ "$2" != -n ] || exit 1; exit 66'
expect 2 umount 1 /proc

# Interrupted.
play flock "[ \"\$2\" != -n ] || exit 1; kill -INT \$PPID; exec sleep 10"
expect 8 umount 1 /proc
says interrupted

expect 1 '' 1
expect 1 '' 1 /proc -N 5
expect 1 '' 1 /proc -x
exit $failed
