#!/bin/bash
# Sees to it that the programs are there which the proofs in tests/proofs use.
#
# Installs what is missing from Debian's packages, but only as root. Anybody else is told what
# is missing; the proofs that need it say the same and are skipped. Never fails: a machine
# without these programs can still run every other test.
set -u

# program  package
needed="strace strace
mkfs.ext4 e2fsprogs
gcc gcc
mount mount
losetup mount"

missing() {
    while read -r program package; do
        command -v "$program" >/dev/null || echo "$package"
    done <<<"$needed" | sort -u | tr '\n' ' '
}

PATH="$PATH:/usr/sbin:/sbin" # where mkfs.ext4 lies, and where not every user looks
packages=$(missing)
[ -n "$packages" ] || exit 0

if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
    echo "installing for the proofs: $packages"
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
echo "not installed: $packages- the proofs that need them will be skipped (as root: apt-get install $packages)" >&2
exit 0
