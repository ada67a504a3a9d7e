# SPDX-License-Identifier: MIT OR Apache-2.0
# In the guest with a Mali-G610: panthor awake, asleep, and with several apps. See panthor.rs.
set -eo pipefail
# Linux 7 writes these two lines in other words.
dmesg | grep -io 'mali-g610 id 0xa867 .*'
dmesg | grep -o 'CSF FW .*v1\..*'
clinfo -l | grep 'Mali-G610'
power=$(echo /sys/bus/platform/devices/*.gpu/power)
live() { saxpy --x x2.npy --y y2.npy --a 2.5 --out $1; }

live first.npy
echo on > $power/control
sleep $AWAKE
[ "$(< $power/runtime_status)" = active ]
live awake.npy
echo auto > $power/control
for ((tries = 0; tries < 100; tries++)); do
	[ "$(< $power/runtime_status)" != suspended ] || break
	sleep 0.05
done
[ "$(< $power/runtime_status)" = suspended ]
live again.npy & one=$!
live beside.npy & two=$!
live third.npy
wait $one
wait $two
for name in awake again beside third; do
	[ "$(sha256sum < $name.npy)" = "$(sha256sum < first.npy)" ]
done

# The recorder maps memory that the app says it will not map; the app sees the driver's answers.
driver_cases sealed > plain
cat plain
# Linux 6.12 refuses to map it (EINVAL), Linux 7 already to say where it would be mapped (EPERM).
[[ "$(cut -d' ' -f4 plain | head -n 2 | tr '\n' ' ')" =~ ^0\ (1022|1)\ $ ]]
if gpureplay record --raw sealed.trace -- sh -c 'driver_cases sealed > recorded' 2> said; then exit 1; fi
grep 'gave the GPU no job' said
[ "$(< plain)" = "$(< recorded)" ]
echo PANTHOR AGREES
