#!/bin/bash
# Sees to it that the programs are there which the tests use beside Python: those of the proofs in
# tests/proofs, and the database servers that tests start for themselves (tests/servers.py).
#
# Installs what is missing from Debian's packages, but only as root. Anybody else is told what
# is missing; the tests that need it say the same and are skipped. Never fails: a machine
# without these programs can still run every other test.
set -u

# program  package
needed="strace strace
mkfs.ext4 e2fsprogs
mkfs.btrfs btrfs-progs
gcc gcc
mount mount
losetup mount
mariadbd mariadb-server
initdb postgresql"

missing() {
    while read -r program package; do
        command -v "$program" >/dev/null || echo "$package"
    done <<<"$needed" | sort -u | tr '\n' ' '
}

PATH="$PATH:/usr/sbin:/sbin" # where mkfs.ext4 and mariadbd lie, and where not every user looks
for folder in /usr/lib/postgresql/*/bin; do PATH="$PATH:$folder"; done # a version of its own each
packages=$(missing)
[ -n "$packages" ] || exit 0

if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
    echo "installing for the tests: $packages"
    quick=(-qq -o Acquire::Retries=0 -o Acquire::http::Timeout=20 -o DPkg::Lock::Timeout=60)
    export DEBIAN_FRONTEND=noninteractive
    # The lists may be old or absent; fetching them is only worth it when they do not do.
    # shellcheck disable=SC2086 # one word per package
    apt-get "${quick[@]}" install -y --no-install-recommends $packages >/dev/null 2>&1 ||
        { apt-get "${quick[@]}" update && apt-get "${quick[@]}" install -y \
            --no-install-recommends $packages; } >/dev/null 2>&1
    packages=$(missing)
    [ -n "$packages" ] || exit 0
fi
echo "not installed: $packages- the tests that need them will be skipped (as root: apt-get install $packages)" >&2
exit 0
