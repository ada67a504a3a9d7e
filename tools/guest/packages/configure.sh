# SPDX-License-Identifier: MIT OR Apache-2.0
# In the guest: configures the packages of /share/root.ext4, as installing them would have done. See packages.sh.
set -e
modprobe loop
mkdir /tmp/root
mount -o loop /share/root.ext4 /tmp/root
mount --rbind /dev /tmp/root/dev
mount -t proc proc /tmp/root/proc
mount -t sysfs sys /tmp/root/sys
inside() {
	env -i INITRD=No PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 TERM=dumb DEBIAN_FRONTEND=noninteractive DPKG_MAINTSCRIPT_NAME= \
		chroot /tmp/root "$@"
}
# Scripts of other packages use what these make: users, the C library's cache, awk and sh by their names.
ln -sf mawk /tmp/root/usr/bin/awk
for script in base-passwd.preinst base-passwd.postinst; do inside sh "/var/lib/dpkg/info/$script" configure; done
rm /tmp/root/usr/bin/awk
inside dpkg --force-unsafe-io --configure --pending --abort-after=1
echo root is configured
inside dpkg --audit
umount -R /tmp/root
sync
