# SPDX-License-Identifier: MIT OR Apache-2.0
# In a guest with more around its GPU than QEMU's machine has: DRIVER MODULES COMMAND...
set -e
for module in $2; do insmod /opt/gpureplay/board/$module.ko*; done
case $1 in
stock)
	modprobe panfrost
	;;
panthor)
	mkdir -p /lib/firmware/arm/mali/arch10.8
	cp /run/host/mali_csffw.bin /lib/firmware/arm/mali/arch10.8/
	for module in $(< /run/host/streams/order); do
		[ $module = fixed.ko.xz ] && [ -d /sys/bus/platform/drivers/reg-fixed-voltage ] || insmod /run/host/streams/$module
	done
	[ -e /run/host/streams/panthor.ko ] || modprobe panthor
	;;
patched)
	modprobe -a gpu-sched drm_shmem_helper
	for module in $(< /opt/gpureplay/modules/order); do
		insmod "/opt/gpureplay/modules/$module"
	done
	;;
esac
for ((tries = 0; tries < 200; tries++)); do
	[ "$1" = none ] || [ -e /dev/dri/renderD128 ] || sleep 0.05
done
shift 2
exec "$@"
