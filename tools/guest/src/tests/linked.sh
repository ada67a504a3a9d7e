# SPDX-License-Identifier: MIT OR Apache-2.0
# In the guest: a recording in all its forms on all devices, with the interrupts that the kernel counts. See linked.rs.
set -eo pipefail
PATH=$PATH:/opt/gpureplay/nano
gpu=$(ls /sys/bus/platform/devices | grep '\.gpu$')

interrupts() { # of the GPU, by the kernel's own count
	awk '/gpureplay-nano|\.gpu/ { for (at = 2; at <= NF && $at ~ /^[0-9]+$/; at++) sum += $at } END { print sum + 0 }' /proc/interrupts
}
count() { # FORM DEVICE RUNS
	local before said after submissions
	before=$(interrupts)
	said=$(device_test $1/recording.gpr $2 $3 $(< $RECORDING/words) | tail -n 1)
	after=$(interrupts)
	echo "$said" >&2
	submissions=${said##*agree, }
	echo "counted $1 $2 $3 ${submissions%% *} $((after - before))"
}

for device in $DEVICES; do
	case $device in nano*)
		if [ ! -e /dev/gpureplay-nano ]; then
			insmod /opt/gpureplay/nano/gpureplay_nano.ko
			echo gpureplay-nano > /sys/bus/platform/devices/$gpu/driver_override
			echo $gpu > /sys/bus/platform/drivers_probe
		fi
	esac
	for form in $FORMS; do
		for runs in 1 $RUNS; do count $form $device $runs; done
	done
done
grep -i gpu /proc/interrupts >&2
