# SPDX-License-Identifier: MIT OR Apache-2.0
# In the guest: installs what `cargo xtask dist --machine aarch64` made in a fresh Debian root, and uses it there. Each part leaves its log and what
# the replays answered in /share/out, and prints one line: its name, its exit code, its seconds. See src/packages.
set -eo pipefail
root=/tmp/root
mkdir -p /tmp/extra /tmp/base /tmp/fresh $root
modprobe -a loop overlay
mount -t tmpfs -o size=80% tmpfs /tmp/fresh
mkdir /tmp/fresh/{upper,work}
mount -t 9p -o trans=virtio,version=9p2000.L,msize=512000,ro,cache=loose extra /tmp/extra
mount -o loop,ro /tmp/extra/root.ext4 /tmp/base
mount -t overlay -o lowerdir=/tmp/base,upperdir=/tmp/fresh/upper,workdir=/tmp/fresh/work overlay $root
mount --rbind /dev $root/dev
mount -t proc proc $root/proc
mount -t sysfs sys $root/sys
mount -t tmpfs tmpfs $root/run
mount --bind /share $root/mnt
release=$(uname -r)
# Of the kernel's thousands of modules those of the guest's image suffice: depmod reads every one.
rm -r $root/usr/lib/modules/$release/kernel
cp -a /usr/lib/modules/$release/. $root/usr/lib/modules/$release/

inside() {
	env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 TERM=dumb DEBIAN_FRONTEND=noninteractive PIP_DISABLE_PIP_VERSION_CHECK=1 \
		SYSTEMD_IGNORE_CHROOT=1 chroot $root "$@"
}
install() { # PATTERN
	local file
	file=$(cd /share/packages && echo $1)
	inside apt-get install -y --no-install-recommends -o DPkg::Options::=--force-unsafe-io "/mnt/packages/$file"
}

# ten NAME COMMAND...: asks about the ten pictures; the picture's path is the last word.
ten() {
	local name=$1 digit
	shift
	for digit in {0..9}; do
		"$@" /mnt/digits/inputs/$digit.npy > /share/out/$name-$digit.txt
	done
}

part_command() {
	install gpureplay_*_arm64.deb
	inside gpureplay --version
	for digit in {0..9}; do
		inside gpureplay run /mnt/digits --input /mnt/digits/inputs/$digit.npy --output probabilities=/mnt/out/command-$digit.npy \
			> /share/out/command-$digit.txt
	done
}

# As an ordinary user of the group `render`; the answers are in the user's home.
member() { inside setpriv --reuid=member --regid=member --init-groups --reset-env "$@"; }

part_nano() {
	install gpureplay-nano-dkms_*_all.deb
	inside dkms status -m gpureplay-nano -k $release | grep ': installed'
	inside modinfo -n gpureplay_nano | grep "/$release/updates/dkms/"
	# The preset: nothing takes the GPU from its driver until somebody says so.
	[ "$(inside systemctl is-enabled gpureplay-nano.service)" = disabled ]
	inside /usr/lib/systemd/systemd-udevd --daemon
	inside getent group render
	inside useradd --create-home --groups render member
	inside useradd --create-home stranger
	# What the service starts.
	$(sed -n 's/^ExecStart=/inside /p' $root/usr/lib/systemd/system/gpureplay-nano.service)
	inside udevadm settle
	ls -l /dev/gpureplay-nano
	[ "$(inside stat -c '%U:%G %a' /dev/gpureplay-nano)" = "root:render 660" ]
	for digit in {0..9}; do
		member gpureplay run /mnt/digits --device nano --input /mnt/digits/inputs/$digit.npy \
			--output probabilities=/home/member/$digit.npy > /share/out/nano-$digit.txt
		cp $root/home/member/$digit.npy /share/out/nano-$digit.npy
	done
	# Who is not in the group is refused.
	if inside setpriv --reuid=stranger --regid=stranger --init-groups --reset-env \
		gpureplay run /mnt/digits --device nano --input /mnt/digits/inputs/3.npy 2> /tmp/refused; then exit 1; fi
	cat /tmp/refused
	grep 'permission denied; join the group render' /tmp/refused
}

part_library() {
	install libgpureplay0_*_arm64.deb
	install libgpureplay-dev_*_arm64.deb
	inside sh -c 'cc /usr/share/doc/libgpureplay-dev/examples/digits.c -o /root/digits $(pkg-config --cflags --libs gpureplay)'
	inside readelf -d /root/digits | grep 'NEEDED.*libgpureplay.so'
	ten library inside /root/digits /mnt/digits
}

part_wheel() {
	inside python3 -m venv --system-site-packages /root/venv
	inside sh -c '/root/venv/bin/pip install --no-index /mnt/packages/*.whl'
	ten wheel inside /root/venv/bin/python /mnt/digits.py /mnt/digits
}

part_recorder() {
	install gpureplay-recorder-dkms_*_all.deb
	inside dkms status -m gpureplay-recorder -k $release | grep ': installed'
	for module in gpureplay_recorder gpureplay_kprobes; do
		inside modinfo -n $module | grep "/$release/updates/dkms/"
	done
	inside modprobe gpureplay_recorder
	[ -c /dev/gpureplay ]
	inside modprobe -r gpureplay_recorder
	[ ! -e /dev/gpureplay ]
}

part_purge() {
	inside gpureplay-nano-bind --release
	inside modprobe -r gpureplay_nano
	inside udevadm control --exit
	inside apt-get purge -y $(inside dpkg-query -W -f '${Package}\n' '*gpureplay*')
	rm -rf $root/root/venv
	if lsmod | grep gpureplay; then exit 1; fi
	inside find /usr /etc /var /run -name '*gpureplay*' > /share/out/left
	cat /share/out/left
	[ ! -s /share/out/left ]
}

for part in "$@"; do
	began=$SECONDS
	# In a condition, `set -e` would not end it.
	set +e
	(set -ex; part_$part) > /share/out/$part.log 2>&1
	echo "$part $? $((SECONDS - began))"
done
