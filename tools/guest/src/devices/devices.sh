# SPDX-License-Identifier: MIT OR Apache-2.0
# In the guest: every device that works without panfrost, and panfrost afterwards. See devices.rs.
set -eo pipefail
PATH=$PATH:/opt/gpureplay/nano
recordings="digits-g52 acl-gemm-g52 acl-conv-g52"
gpu=$(ls /sys/bus/platform/devices | grep '\.gpu$')
# On the guest's own disk: a name that is removed and made again in the share can stay empty for who reads it.
own=$(mktemp -d)

# replay NAME DEVICE RUNS
replay() {
	device_test $1/recording.gpr $2 $3 $(< $1/words)
}

# Does what the doctor says about a problem, word for word, beside the module's file.
cure() { # SUBJECT
	local command
	command=$(gpureplay doctor | sed -n "/^bad  $1: /{n;s/^ *do: //p}") || [ -n "$command" ]
	echo "cure of $1: $command"
	pushd /opt/gpureplay/nano > /dev/null
	eval "$command"
	popd > /dev/null
}

# Without a module: /dev/mem, while the kernel moves pages in all ways that it has.
if gpureplay doctor; then exit 1; fi
device_test moves
huge=/sys/kernel/mm/transparent_hugepage
echo always > $huge/enabled
echo 0 > $huge/khugepaged/scan_sleep_millisecs
while sleep 0.1; do echo 1 > /proc/sys/vm/compact_memory; done & mover=$!
for name in $recordings; do replay $name devmem $RUNS | tail -n 1; done
kill $mover
wait $mover 2> /dev/null || [ $? = 143 ]

cure "driver that holds the GPU"
echo $gpu > /sys/bus/platform/drivers/gpureplay-nano/unbind
cure "driver that holds the GPU"
gpureplay doctor
if replay digits-g52 devmem 1 2> refused; then exit 1; fi
grep gpureplay-nano refused
for name in $recordings; do replay $name nano $RUNS | tail -n 1; done
for image in 0 1 2; do gpureplay run digits-g52 --device nano --input digits-g52/inputs/$image.npy; done
# The GPU's own counters go on during each of the 20 jobs, and the answer is the same.
gpureplay run digits-g52 --device nano --input digits-g52/inputs/3.npy --per-job --gpu-counters > counted
[ "$(grep -cE ' [1-9][0-9]* ± [0-9]+ +[1-9][0-9]* ± [0-9]+$' counted)" = 20 ]
grep -q 'digit 3 .* bit for bit' counted
device_test memory 700

# A process that dies in the middle of a run leaves a GPU that the next one can use at once, and no page.
RANDOM=$SEED
devices=(nano nano:shared) names=($recordings)
for ((kill = 0; kill < KILLS; kill++)); do
	name=${names[(SEED + kill) % 3]} device=${devices[(SEED + kill) / 3 % 2]}
	coproc endless { exec device_test $name/recording.gpr $device 0 $(< $name/words); }
	victim=$endless_PID
	read -r line <&${endless[0]}
	[ "$line" = running ]
	sleep 0.$(printf %03d $((RANDOM % 200)))
	kill -9 $victim
	wait $victim 2> /dev/null || [ $? = 137 ]
	[ "$(device_test pages)" = 0 ]
	replay $name $device 1 > /dev/null
done
echo "$KILLS processes killed, the next run was right each time, no page left in use"

hostile $SECONDS_OF_REQUESTS $SEED > tap || { grep -v ^ok tap; exit 1; }
grep '^# ' tap
replay digits-g52 nano 1 > /dev/null

# Two processes: the first lends the GPU between its jobs to the second, which comes and goes.
device_test acl-conv-g52/recording.gpr nano:shared 0 $(< acl-conv-g52/words) > $own/lender & endless=$!
until grep -qs running $own/lender; do sleep 0.1; done
if gpureplay run digits-g52 --device nano 2> busy; then exit 1; fi
grep 'another process has the GPU' busy
for ((guest = 0; guest < 5; guest++)); do replay digits-g52 nano:shared 3 | tail -n 1; done
kill -9 $endless
wait $endless 2> /dev/null || [ $? = 137 ]
# Both at once. On a busy machine one may be done before the other has begun: then nothing is lent, and they run longer.
for ((shared = RUNS > 100 ? RUNS : 100; ; shared *= 4)); do
	[ $shared -lt 100000 ] || { echo "two replays never shared the GPU" >&2; exit 1; }
	replay digits-g52 nano:shared $shared > $own/first & first=$!
	replay acl-gemm-g52 nano:shared $shared > $own/second & second=$!
	wait $first
	wait $second
	tail -qn 1 $own/first $own/second
	if tail -qn 1 $own/first $own/second | grep -qv 'lent 0 times'; then break; fi
done
[ "$(device_test pages)" = 0 ]

# The GPU back to panfrost, to us, and back again, without a reboot.
to() { # DRIVER: rebinds the GPU
	[ ! -e /sys/bus/platform/devices/$gpu/driver ] || echo $gpu > /sys/bus/platform/devices/$gpu/driver/unbind
	echo $1 > /sys/bus/platform/devices/$gpu/driver_override
	echo $gpu > /sys/bus/platform/drivers_probe
	[ "$(basename $(readlink /sys/bus/platform/devices/$gpu/driver))" = $1 ]
}
modprobe panfrost
to panfrost
kernels | tail -n 1
if gpureplay run digits-g52 --device nano 2> refused; then exit 1; fi
grep 'no such device' refused
cure "driver that holds the GPU"
replay digits-g52 nano 3 | tail -n 1
# Unbinding while a replay runs ends the replay, not the machine.
device_test acl-conv-g52/recording.gpr nano 0 $(< acl-conv-g52/words) > $own/unbound 2> ended & endless=$!
until grep -qs running $own/unbound; do sleep 0.1; done
to panfrost
if wait $endless; then exit 1; fi
cat ended
kernels | tail -n 1
# A kernel that checks locks ends that with its first report, so that silence afterwards means nothing.
if [ "$SANITIZED" = 1 ]; then
	grep -qx ' *debug_locks: *1' /proc/lockdep_stats
	[[ $(uname -r) = *-sanitized-* ]]
fi
echo ALL DEVICES AGREE
