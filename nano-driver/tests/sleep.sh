# SPDX-License-Identifier: GPL-2.0
# The machine sleeps while a replay runs, guarded and direct: the replay ends with an error, the next one is right.
#
#	cargo xtask guest run --no-build --driver none --timeout 120 --share DIR -- bash sleep.sh
#
# DIR holds this file, gpureplay_nano.ko, device_test, recordings/digits-g52 and recordings/acl-conv-g52. The guest's virtual disks
# do not come back from sleep: everything that is needed afterwards is in memory, and the guest is ended by its time-out.
set -e
gpu=$(ls /sys/bus/platform/devices | grep '\.gpu$')
insmod gpureplay_nano.ko
echo gpureplay-nano > /sys/bus/platform/devices/$gpu/driver_override
echo $gpu > /sys/bus/platform/drivers_probe
mkdir -p /dev/shm/sleep
mount -t tmpfs none /dev/shm/sleep
cp -r device_test digits-g52 acl-conv-g52 /dev/shm/sleep/
cd /dev/shm/sleep
mkfifo never
exec 9<> never
conv="x=acl-conv-g52/inputs/x.npy"
digits="input=digits-g52/inputs/0.npy probabilities=digits-g52/expected/0.npy"
# All of a sleep but the last step, for a second: devices are suspended and resumed.
echo devices > /sys/power/pm_test
echo 1 > /sys/module/suspend/parameters/pm_test_delay
for device in nano nano:direct; do
	./device_test acl-conv-g52/recording.gpr $device 0 $conv > endless 2> ended & endless=$!
	read -r -t 2 -u 9 || true
	[ "$(< endless)" = running ]
	echo freeze > /sys/power/state
	if wait $endless; then exit 1; fi
	echo "$device: $(< ended)"
	./device_test digits-g52/recording.gpr $device 2 $digits
done
[ "$(./device_test pages)" = 0 ]
echo "SLEPT AND WOKE"
