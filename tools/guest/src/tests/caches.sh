# SPDX-License-Identifier: MIT OR Apache-2.0
# In a guest whose caches are not coherent: the nano driver as it is, then without one of its calls. See caches.rs.
set -eo pipefail
PATH=$PATH:/opt/gpureplay/nano
gpu=$(ls /sys/bus/platform/devices | grep '\.gpu$')
read -r digits _ <<< "$RECORDINGS"

load() { # MODULE: the driver has the GPU
	insmod $1
	echo gpureplay-nano > /sys/bus/platform/devices/$gpu/driver_override
	echo $gpu > /sys/bus/platform/drivers_probe
	[ -e /dev/gpureplay-nano ]
}
unload() {
	echo $gpu > /sys/bus/platform/drivers/gpureplay-nano/unbind
	rmmod gpureplay_nano
}
replay() { # NAME DEVICE RUNS
	device_test $1/recording.gpr $2 $3 $(< $1/words)
}

load /opt/gpureplay/nano/gpureplay_nano.ko
for name in $RECORDINGS; do
	for device in nano nano:direct; do replay $name $device 2 | tail -n 1; done
done
device_test zeroes
unload

for mutant in $MUTANTS; do
	load $mutant.ko
	wrong=
	for device in nano nano:direct; do
		replay $digits $device 2 > said 2>&1 || wrong+=" $device"
		echo "$mutant on $device: $(tail -n 1 said)" >&2
	done
	device_test zeroes > said 2>&1 || wrong+=" zeroes"
	echo "$mutant: $(tail -n 1 said)" >&2
	echo "$mutant: wrong:$wrong"
	unload
done
echo "missed: $(< /sys/module/gpureplay_caches/parameters/missed)"
