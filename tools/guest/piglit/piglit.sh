#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# piglit/: what the OpenCL tests of Debian's piglit need. It lies beside the guest, not in its image: only
# `cargo xtask guest piglit` uses it, over a share.
set -euo pipefail
if [ "${1:-}" != inside ]; then
	exec "$GUEST/in-root" bash "/guest/steps/piglit.sh" inside
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
apt-get -qq update
# piglit, and the libraries of its windowing helper that the guest's userland lacks.
apt-get -o APT::Sandbox::User=root download piglit:arm64 libwaffle-1-0:arm64 libxkbcommon0:arm64 libxcb-dri2-0:arm64 \
	libx11-xcb1:arm64
mkdir root
for deb in *.deb; do dpkg-deb -x "$deb" root; done

libraries=root/usr/lib/aarch64-linux-gnu
from=$libraries/piglit
to=/guest/piglit.new
rm -rf --one-file-system "$to"
mkdir -p "$to"/{bin,lib,tests,generated_tests}
cp -a "$from"/bin/cl-* "$to/bin/"
cp -a "$from"/lib/libpiglitutil* "$to/lib/"
cp -a $libraries/lib{waffle,xkbcommon,xcb-dri2,X11-xcb}*.so.* "$to/lib/"
cp -a "$from"/tests/{cl,cl.xml.gz} "$to/tests/"
cp -a "$from"/generated_tests/cl "$to/generated_tests/"
dpkg-deb -f piglit_*.deb Version > "$to/version"
tests=$(zcat "$to/tests/cl.xml.gz" | grep -o '<Test ' | wc -l)
[ "$tests" -gt 0 ] || { echo "piglit has no OpenCL tests"; exit 1; }
echo "piglit $(cat "$to/version"): $tests OpenCL tests"
rm -rf --one-file-system /guest/piglit
mv "$to" /guest/piglit
