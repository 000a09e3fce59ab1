#!/bin/sh
# Makes Wine's folder of settings and drives in the chroot ROOT. Call it in namespaces of its own, as chroot.ts does:
#   unshare --mount --pid --fork --kill-child --net sh boot.sh ROOT
set -eu
root=$1
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
# Programs with a console need no window: with the driver "null" Wine looks for no display.
exec chroot "$root" /usr/bin/env -i HOME=/root PATH=/usr/lib/wine:/usr/bin:/bin \
  WINEPREFIX=/opt/wine WINEARCH=win64 WINEDEBUG=-all WINEDLLOVERRIDES='mscoree,mshtml=' /bin/sh -ec '
    wine64 wineboot --init
    wine64 reg add "HKCU\\Software\\Wine\\Drivers" /v Graphics /d null /f
    wineserver --wait
  '
