#!/bin/sh
# Runs a program of the chroot with Wine. Call it in namespaces of its own, as chroot.ts does:
#   unshare --mount --pid --fork --kill-child --net sh enter.sh CACHE CHECKOUT MODULES SHARED PROGRAM [ARGUMENT...]
# What the program writes is in memory and goes with the namespace, except in SHARED (Z:\shared) and MODULES.
set -eu
cache=$1 checkout=$2 modules=$3 shared=$4
shift 4

top=$cache/mounts
mkdir -p "$top"
mount -t tmpfs tmpfs "$top"

# layer LOWER NAME: a writable view of the folder LOWER at $top/NAME.
layer() {
  mkdir -p "$top/$2" "$top/$2.written" "$top/$2.work"
  mount -t overlay overlay -o "lowerdir=$1,upperdir=$top/$2.written,workdir=$top/$2.work" "$top/$2"
}
layer "$cache/root" root
root=$top/root
mkdir -p "$root/latchkey" "$root/shared"
layer "$checkout" latchkey
mount --rbind "$top/latchkey" "$root/latchkey"
mount --bind "$modules" "$root/latchkey/node_modules"
mount --bind "$shared" "$root/shared"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"

exec chroot "$root" /usr/bin/env -i HOME=/root PATH=/usr/lib/wine:/usr/bin:/bin:/usr/sbin:/sbin \
  WINEPREFIX=/opt/wine WINEARCH=win64 WINEDEBUG=-all WINEDLLOVERRIDES='mscoree,mshtml=' \
  /bin/sh -c 'ip link set lo up; cd /latchkey; exec "$@"' sh "$@"
