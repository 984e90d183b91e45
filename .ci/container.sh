#!/bin/sh
# container.sh ROOT GROUND READ... -- COMMAND: run a command where there are, read-only, the paths
# READ, to write to the folder GROUND as /ground, and nothing else: no shell, no compiler, no git,
# no home. ROOT is an empty folder. Root becomes nobody; others need user namespaces.
set -e
PATH=$PATH:/usr/sbin:/sbin
if [ "$(id -u)" = 0 ] && [ -z "$INSIDE" ]; then
    INSIDE=nobody exec unshare --mount "$0" "$@"
elif [ -z "$INSIDE" ]; then
    INSIDE=root exec unshare --map-root-user --mount "$0" "$@"
fi
root=$1 ground=$2
shift 2
mount -t tmpfs -o mode=755 none "$root"
for folder in tmp dev/shm; do
    mkdir -p "$root/$folder"
    mount -t tmpfs -o mode=1777 none "$root/$folder"
done
while [ "$1" != -- ]; do
    if [ -L "$1" ]; then
        ln -s "$(readlink "$1")" "$root$1"
    elif [ -e "$1" ]; then
        mkdir -p "$root$1"
        mount --bind "$1" "$root$1"
        mount -o remount,bind,ro "$root$1"
    fi
    shift
done
shift
mkdir "$root/proc" "$root/ground"
mount --rbind /proc "$root/proc"
for device in null urandom; do
    touch "$root/dev/$device"
    mount --bind "/dev/$device" "$root/dev/$device"
done
mount --bind "$ground" "$root/ground"
mount -o remount,ro "$root"
if [ "$INSIDE" = nobody ]; then
    exec env -i "$(command -v chroot)" --userspec=65534:65534 "$root" "$@"
fi
exec env -i "$(command -v chroot)" "$root" "$@"
