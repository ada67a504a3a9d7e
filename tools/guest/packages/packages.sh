#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# packages/root.ext4: Debian trixie for arm64 as people have it, with apt, systemd's programs, a compiler, DKMS, the headers of the guest's
# kernel, NumPy and pip. It lies beside the guest, not in its image: only `cargo xtask guest packages` uses it.
#
# No foreign binary runs on the host: the packages are unpacked here and written into dpkg's list as unpacked, and the guest configures them
# (`dpkg --configure`) before anything of ours is installed.
set -euo pipefail
cd "$GUEST"

release=$(sed -n 's/^stock=//p' kernels)-arm64
work=$GUEST/packages.new
root=$work/root
rm -rf --one-file-system "$work"
mkdir -p "$work/debs"
wanted="?essential apt adduser passwd udev systemd kmod dkms gcc libc6-dev make pkgconf linux-headers-$release
	python3-numpy python3-venv python3-pip"
mkdir -p "$root"
WANTED=$wanted DEBS=$work/debs mmdebstrap --variant=extract --architectures=arm64 --mode=root --aptopt="$GUEST/apt.conf" \
	--extract-hook='APT_CONFIG=$MMDEBSTRAP_APT_CONFIG apt-get -qq -y --no-install-recommends --download-only -o APT::Sandbox::User=root install $WANTED' \
	--extract-hook='mv "$1"/var/cache/apt/archives/*.deb "$DEBS"' \
	trixie "$root" sources.list

# The links of a merged /usr come first.
for deb in "$work"/debs/base-files_*.deb "$work"/debs/*.deb; do dpkg-deb -x "$deb" "$root"; done

# The headers' package depends on the kernel's, whose initramfs nobody boots here; making one takes the guest minutes.
sed -i 's/^update_initramfs=.*/update_initramfs=no/' "$root/etc/initramfs-tools/update-initramfs.conf"

# What `dpkg --unpack` leaves: scripts, lists of files, and the package's fields.
info=$root/var/lib/dpkg/info
mkdir -p "$info" "$root/var/lib/dpkg/updates"
: > "$root/var/lib/dpkg/status"
echo arm64 > "$root/var/lib/dpkg/arch"
echo 1 > "$info/format"
for deb in "$work"/debs/*.deb; do
	name=$(dpkg-deb -f "$deb" Package)
	[ "$(dpkg-deb -f "$deb" Multi-Arch)" != same ] || name=$name:arm64
	dpkg-deb --control "$deb" "$work/control"
	{
		sed '1a Status: install ok unpacked' "$work/control/control" | sed '/^$/d'
		if [ -s "$work/control/conffiles" ]; then
			echo Conffiles:
			sed -n '/^\//p' "$work/control/conffiles" | while read -r file; do
				echo " $file $(md5sum < "$root$file" | cut -d ' ' -f 1)"
			done
		fi
		echo
	} >> "$root/var/lib/dpkg/status"
	rm "$work/control/control"
	for file in "$work"/control/*; do
		[ ! -f "$file" ] || mv "$file" "$info/$name.${file##*/}"
	done
	rm -r "$work/control"
	dpkg-deb --fsys-tarfile "$deb" | tar -t | sed 's|^\./|/|; s|/$||; s|^$|/.|' > "$info/$name.list"
done
rm -f "$root"/var/cache/apt/archives/*.deb "$root"/etc/resolv.conf
# No service is started here.
printf '#!/bin/sh\nexit 101\n' > "$root/usr/sbin/policy-rc.d"
chmod 755 "$root/usr/sbin/policy-rc.d"

truncate -s 2500M "$work/root.ext4"
mke2fs -q -t ext4 -O ^has_journal,^metadata_csum -E root_owner=0:0 -d "$root" "$work/root.ext4"
rm -rf --one-file-system "$root" "$work/debs"
rm -rf --one-file-system packages
mv packages.new packages
