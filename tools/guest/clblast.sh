#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# clblast.sh DIR: Debian's CLBlast for arm64, unpacked into DIR: include/ and lib/. Runs in the build root. It lies beside the guest,
# not in its image: only programs that train with it use it.
set -euo pipefail
to=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
packages="libclblast1:arm64 libclblast-dev:arm64"
# The lists of packages are those of the day when the guest was built; newer ones are fetched if a package is not there any more.
apt-get -qq -o APT::Sandbox::User=root download $packages 2> error || {
	apt-get -qq update
	apt-get -qq -o APT::Sandbox::User=root download $packages
}
mkdir root
for deb in *.deb; do dpkg-deb -x "$deb" root; done
rm -rf --one-file-system "$to"
mkdir -p "$to/include" "$to/lib"
cp -a root/usr/include/clblast* "$to/include/"
cp -a root/usr/lib/aarch64-linux-gnu/libclblast.so* "$to/lib/"
dpkg-deb -f libclblast1_*.deb Version > "$to/version"
