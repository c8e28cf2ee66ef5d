#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# mount.lccfs hands on what mount(8) gives it. Usage: mount_helper_test.sh PATH-OF-mount.lccfs
set -eu
helper=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
printf '#!/bin/sh\nprintf "<%%s>" "$@"\n' > "$folder/lccfs-fuse"
printf '#!/bin/sh\nprintf "mount"; printf "<%%s>" "$@"\n' > "$folder/mount"
chmod +x "$folder/lccfs-fuse" "$folder/mount"
failed=0

# expect OUTPUT WORD...: the helper, called with these words, calls lccfs-fuse with those.
expect() {
  wanted=$1
  shift
  got=$(PATH="$folder:/usr/bin:/bin" "$helper" "$@" 2> /dev/null) || got="status $?"
  [ "$got" = "$wanted" ] && return
  echo "mount.lccfs $*: $got, not $wanted" >&2
  failed=1
}

expect '<-m></mnt><-p><vms>' vms /mnt
expect '<-m></mnt><-p><vms><-n><nova>' vms/nova /mnt -o rw
expect '<-m></mnt><--local></srv/v><--create><-o><nofail>' /srv/v /mnt -o rw,create,nofail
expect '<-m></a b><-p><1><-c></x y.conf><--id><vm><-o><ro,nosuid>' 1 '/a b' -s -v -o 'ro,conf=/x y.conf,id=vm,nosuid'
expect '<-m></mnt><-p><vms><--log-file></l><--log-level><debug>' vms /mnt -o log-file=/l,log-level=debug
expect '<-m></mnt><-p><vms><-o><*>' vms /mnt -o '*'
expect '<-m></mnt><-p><vms><-o><ro>' vms /mnt -r -n -t lccfs
expect '<-m></mnt><-p><vms><-n><nova><-o><subdir=/a/b c>' 'vms/nova:/a/b c' /mnt
expect '<-m></mnt><-p><vms><-o><ro,subdir=/>' vms:/ /mnt -t fuse.lccfs -o ro
expect '<-m></mnt><--local></srv/v:/a><-o><subdir=/b>' /srv/v:/a /mnt -o subdir=/b # neither is there
mkdir -p "$folder/v" "$folder/w:/x"
expect "<-m></mnt><--local><$folder/v><-o><subdir=/a/b c>" "$folder/v:/a/b c" /mnt
expect "<-m></mnt><--local><$folder/v><-o><ro,subdir=/a\\,b:/c>" "$folder/v:/a,b:/c" /mnt -o ro
expect "<-m></mnt><--local><$folder/v><-o><subdir=/>" "$folder/v:/" /mnt
expect "<-m></mnt><--local><$folder/w:/x>" "$folder/w:/x" /mnt
expect "<-m></mnt><--local><$folder/w:/x><-o><subdir=/y>" "$folder/w:/x:/y" /mnt
expect '<-m></mnt><-p><vms><-c></a,b><--id><x><-o><subdir=/a\,id=b,ro>' vms /mnt -o 'subdir=/a\,id=b,conf=/a\,b,id=x,ro'
expect '<-m></mnt><-p><vms><-n><n><-o><ro,subdir=/a\,b>' 'vms/n:/a,b' /mnt -o 'ro'
expect '<-m></mnt><-p><vms><-o><subdir=/a\\,ro>' vms /mnt -o 'subdir=/a\\,ro'
expect '' vms /mnt -f
expect 'status 1' vms
expect 'status 1' /srv/v /mnt -o conf=/x
expect 'status 1' vms /mnt -N 5
for empty in conf= id= log-file= log-level=; do # client.admin, say, is not what was meant
  expect 'status 1' vms /mnt -o "ro,$empty,nofail"
done
expect 'mount<-i><--options-source><disable><-o><remount,ro></mnt>' vms /mnt -o remount,ro
expect 'mount<-i><--options-source><disable><-o><remount,ro,nosuid,nodev></mnt>' \
  vms /mnt -o rw,nosuid,nodev,user_id=0,allow_other,remount,ro
expect '' vms /mnt -f -o remount,ro
expect 'status 32' vms /mnt -o remount
expect 'status 32' vms /mnt -o remount,ro,rw
expect 'status 32' vms /mnt -o remount,nosuid
exit $failed
