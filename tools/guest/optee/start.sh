#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# In the guest: loads the TEE driver, starts the supplicant, runs a command.
# What the secure world stores lies in /share/tee, so that it outlives the guest.
set -e
optee=/opt/gpureplay/optee
export LD_LIBRARY_PATH=$optee/lib/aarch64-linux-gnu PATH=$optee/bin:$PATH
for module in $(< $optee/modules/order); do insmod $optee/modules/$module; done
mkdir -p /share/tee /var/lib
ln -sfn $optee/lib/optee_armtz /usr/lib/optee_armtz
ln -sfn $optee/lib/tee-supplicant /usr/lib/tee-supplicant
ln -sfn /share/tee /var/lib/tee
for ((tries = 0; tries < 100; tries++)); do
	[ -e /dev/teepriv0 ] && break
	sleep 0.05
done
[ -e /dev/teepriv0 ] || { echo "no /dev/teepriv0: the secure world did not answer" >&2; exit 1; }
$optee/sbin/tee-supplicant -f /share/tee &
exec "$@"
