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
	replay $name nano 2 | tail -n 1
done
device_test zeroes
hostile neighbours
unload

for mutant in $MUTANTS; do
	load $mutant.ko
	wrong=
	replay $digits nano 2 > said 2>&1 || wrong+=" nano"
	echo "$mutant on nano: $(tail -n 1 said)" >&2
	device_test zeroes > said 2>&1 || wrong+=" zeroes"
	echo "$mutant: $(tail -n 1 said)" >&2
	hostile neighbours > said 2>&1 || wrong+=" neighbours"
	echo "$mutant: $(tail -n 1 said)" >&2
	echo "$mutant: wrong:$wrong"
	unload
done
echo "missed: $(< /sys/module/gpureplay_caches/parameters/missed)"
