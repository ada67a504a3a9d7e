# SPDX-License-Identifier: MIT OR Apache-2.0
# In the guest: bad lists of accesses for two nano drivers that are built with the kernel's class of before May 2024. See drivers.rs.
set -eo pipefail
PATH=$PATH:/opt/gpureplay/nano
gpu=$(ls /sys/bus/platform/devices | grep '\.gpu$')
try() { # MODULE
	insmod $1
	echo gpureplay-nano > /sys/bus/platform/devices/$gpu/driver_override
	echo $gpu > /sys/bus/platform/drivers_probe
	hostile registers > tap || { grep -v ^ok tap; return 1; }
}
try former.ko
if dmesg | grep 'Unable to handle'; then exit 1; fi
echo TAKES BAD LISTS
rmmod gpureplay_nano
try freed.ko
