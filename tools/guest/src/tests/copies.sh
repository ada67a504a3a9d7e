# SPDX-License-Identifier: MIT OR Apache-2.0
# In a guest that copies every page for its devices (swiotlb=force): the nano driver refuses, and says why. See drivers.rs.
set -eo pipefail
PATH=$PATH:/opt/gpureplay/nano
gpu=$(ls /sys/bus/platform/devices | grep '\.gpu$')
insmod /opt/gpureplay/nano/gpureplay_nano.ko
echo gpureplay-nano > /sys/bus/platform/devices/$gpu/driver_override
echo $gpu > /sys/bus/platform/drivers_probe
hostile copies
dmesg | grep 'gpureplay-nano.*swiotlb'
