# SPDX-License-Identifier: MIT OR Apache-2.0
# In the guest with a Mali-G57: an OpenCL program on the kernel's driver, then replays there and on the nano driver. See valhall.rs.
set -eo pipefail
PATH=$PATH:/opt/gpureplay/nano
for ((tries = 0; tries < 200; tries++)); do [ -e /dev/dri/renderD128 ] && break; sleep 0.05; done
dmesg | grep -o 'mali-g57 id 0x9093 .*'

same() { # FILE FILE
	[ "$(sha256sum < $1)" = "$(sha256sum < $2)" ]
}
replay() { # DEVICE
	gpureplay run saxpy.gpr --device $1 --force --input x=x2.npy --input y=y2.npy --output out=$1.npy
	same $1.npy by-model.npy
	same $1.npy live.npy
	device_test digits-g57/recording.gpr $1 $RUNS $(< digits-g57/words) | tail -n 1
}

saxpy --x x2.npy --y y2.npy --a 2.5 --out live.npy
replay panfrost
gpu=$(ls /sys/bus/platform/devices | grep '\.gpu$')
echo $gpu > /sys/bus/platform/devices/$gpu/driver/unbind
insmod /opt/gpureplay/nano/gpureplay_nano.ko
echo gpureplay-nano > /sys/bus/platform/devices/$gpu/driver_override
echo $gpu > /sys/bus/platform/drivers_probe
replay nano
echo A G57 AGREES
