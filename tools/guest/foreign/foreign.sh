#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# foreign/: programs and libraries of others that are recorded in tests, and small callers of such libraries. They lie beside the guest, not
# in its image: only `cargo xtask guest foreign` uses them, over a share.
set -euo pipefail
if [ "${1:-}" != inside ]; then
	exec "$GUEST/in-root" bash "/guest/steps/foreign.sh" inside
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
apt-get -qq update
apt-get -o APT::Sandbox::User=root download libclblast1:arm64 libclblast-dev:arm64 libpng16-16t64:arm64 libpng-dev:arm64 \
	python3-pyopencl:arm64 python3-markupsafe:arm64 python3-mako python3-pytools python3-platformdirs python3-typing-extensions \
	python3-decorator
mkdir root
for deb in *.deb; do dpkg-deb -x "$deb" root; done

# The source of the library that the guest has: its example programs are in no package.
version=$(zcat /guest/userland/usr/share/doc/libarm-compute-dev/changelog.Debian.gz | sed -n '1s/.*(\(.*\)).*/\1/p')
sed 's/^deb /deb-src /' /guest/sources.list > sources.list
mkdir -p lists/partial
sources=(-o Dir::Etc::SourceList="$work/sources.list" -o Dir::Etc::SourceParts=/dev/null -o Dir::State::Lists="$work/lists"
	-o APT::Sandbox::User=root)
apt-get "${sources[@]}" -qq update
apt-get "${sources[@]}" -qq source --download-only --tar-only "arm-compute-library=$version"
mkdir library
tar -xf arm-compute-library_*.orig.tar.* -C library --strip-components=1

to=/guest/foreign.new
rm -rf --one-file-system "$to"
mkdir -p "$to"/{bin,lib,python}
libraries=root/usr/lib/aarch64-linux-gnu
cp -a $libraries/libclblast.so.* $libraries/libpng16.so.* "$to/lib/"
cp -a root/usr/lib/python3/dist-packages/. "$to/python/"

own=/guest/foreign-sources
common=(--sysroot=/guest/userland -O2)
aarch64-linux-gnu-gcc "${common[@]}" -Wall -Wextra -Werror -o "$to/bin/gemm" $own/gemm.c -I root/usr/include \
	-L "$to/lib" -l:libclblast.so.1 -lOpenCL -Wl,--unresolved-symbols=ignore-in-shared-libs
aarch64-linux-gnu-gcc "${common[@]}" -Wall -Wextra -Werror -o "$to/bin/photo" $own/photo.c -I root/usr/include \
	-L "$to/lib" -l:libpng16.so.16 -lOpenCL
aarch64-linux-gnu-gcc "${common[@]}" -Wall -Wextra -Werror -shared -fPIC -o "$to/lib/libwitness.so" $own/witness.c
cp $own/picture.py "$to/bin/"

include=/guest/userland/usr/include/aarch64-linux-gnu
acl=(aarch64-linux-gnu-g++ "${common[@]}" -O1 -std=c++17 -w -DARM_COMPUTE_CL -DARM_COMPUTE_OPENCL_ENABLED -I library
	-isystem $include -isystem $include/half)
for source in Utils GraphUtils CommonGraphOptions; do
	"${acl[@]}" -c -o "$source.o" "library/utils/$source.cpp" &
done
wait
for example in graph_lenet graph_squeezenet graph_mobilenet; do
	"${acl[@]}" -o "$to/bin/$example" "library/examples/$example.cpp" ./*.o -larm_compute_graph -larm_compute -lpthread &
done
wait
for program in gemm photo graph_lenet graph_squeezenet graph_mobilenet; do
	[ -x "$to/bin/$program" ] || { echo "$program was not built"; exit 1; }
done
{
	for deb in *.deb; do dpkg-deb -W --showformat='${Package} ${Version}\n' "$deb"; done
	echo "arm-compute-library $version, examples"
} > "$to/versions"
rm -rf --one-file-system /guest/foreign
mv "$to" /guest/foreign
