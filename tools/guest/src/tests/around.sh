# SPDX-License-Identifier: MIT OR Apache-2.0
# In a guest whose GPU has a power domain and a supply: the nano driver switches them, and touches no register without power. See around.rs.
set -eo pipefail
PATH=$PATH:/opt/gpureplay/nano
gpu=$(ls /sys/bus/platform/devices | grep '\.gpu$')
words="$(< digits-g52/words)"

say() {
	echo "$*"
	echo "around: $*" > /dev/kmsg
}
domain() { # PARAMETER
	echo "$(< /sys/module/gpureplay_power/parameters/$1)"
}
load() { # MODULE: the driver has the GPU
	insmod $1
	echo gpureplay-nano > /sys/bus/platform/devices/$gpu/driver_override
	echo $gpu > /sys/bus/platform/drivers_probe
	[ -e /dev/gpureplay-nano ]
}
unload_while_used() { # the replay ends with an error, the machine goes on
	echo $gpu > /sys/bus/platform/drivers/gpureplay-nano/unbind
	if wait $endless; then exit 1; fi
	rmmod gpureplay_nano
}
replay() { # DEVICE RUNS
	device_test digits-g52/recording.gpr $1 $2 $words
}
endless() { # DEVICE: begins a replay without end
	local running
	running=$(mktemp)	# a name that is made anew in the share can stay empty for who reads it
	device_test acl-conv-g52/recording.gpr $1 0 $(< acl-conv-g52/words) > $running 2> ended & endless=$!
	until grep -qs running $running; do sleep 0.1; done
}
for name in /sys/class/regulator/*/name; do
	[ "$(< $name)" != gpu ] || supply=${name%/name}
done
off() { # the GPU has no power, and nobody missed it
	[ "$(domain power)" = 0 ]
	[ "$(domain unpowered)" = 0 ]
}

# Power and supply are on while they are needed, and not longer.
others=$(< $supply/num_users)
off
load /opt/gpureplay/nano/gpureplay_nano.ko
[ "$(< $supply/num_users)" = $((others + 1)) ]
off
replay nano 2 | tail -n 1
off
# The highest operating point of two, and a cooling device that chooses the other one, with the GPU off and on.
for cooling in /sys/class/thermal/cooling_device*; do
	[ "$(< $cooling/type)" != gpureplay-nano ] || break
done
[ "$(< $cooling/max_state)" = 1 ] && [ "$(< $cooling/cur_state)" = 0 ]
echo 1 > $cooling/cur_state
off
replay nano 2 | tail -n 1
[ "$(< $cooling/cur_state)" = 1 ]
endless nano
[ "$(domain power)" = 1 ]
echo 0 > $cooling/cur_state
[ "$(< $cooling/cur_state)" = 0 ]
if echo 2 > $cooling/cur_state; then exit 1; fi
unload_while_used
[ "$(< $supply/num_users)" = $others ]
off
say "unbound under a replay: power switched $(domain switched) times"

# A driver that stops the GPU when its domain is gone already.
load late-unbinding.ko
endless nano
unload_while_used
before=$(domain unpowered)
[ $before -gt 0 ]
say "late unbinding: $before accesses without power"

# Little memory: a control group of 32 MiB.
load /opt/gpureplay/nano/gpureplay_nano.ko
mountpoint -q /sys/fs/cgroup || mount -t cgroup2 none /sys/fs/cgroup
echo +memory > /sys/fs/cgroup/cgroup.subtree_control
mkdir /sys/fs/cgroup/small
echo 32M > /sys/fs/cgroup/small/memory.max
if (echo $BASHPID > /sys/fs/cgroup/small/cgroup.procs; exec device_test memory 200) 2> refused; then exit 1; fi
say "200 MiB in a group of 32: $(< refused)"
grep -q OutOfMemory refused
[ "$(device_test pages)" = 0 ]
replay nano 1 | tail -n 1

# A GPU that does not reset.
hostile orphans > tap || { grep -v ^ok tap; exit 1; }
say "a GPU that does not reset: $(tail -n 1 tap)"
replay nano 1 | tail -n 1
[ "$(domain unpowered)" = $before ]

# Sleep, in the middle of a replay. Disks do not come back from it: all that follows is in memory, and words of the shell.
mount -t securityfs none /sys/kernel/security
mkdir -p /dev/shm/sleep
mount -t tmpfs none /dev/shm/sleep
cp -r /opt/gpureplay/nano/device_test /usr/bin/busybox no-clock.ko digits-g52 acl-conv-g52 /dev/shm/sleep/
for name in insmod rmmod; do ln -s busybox /dev/shm/sleep/$name; done
cd /dev/shm/sleep
mkfifo never
# What is started from here on lies in memory.
PATH=/dev/shm/sleep
exec 9<> never
# All of a sleep but the last step, for a second: devices are suspended and resumed.
echo devices > /sys/power/pm_test
echo 1 > /sys/module/suspend/parameters/pm_test_delay
sleep_under_replay() {
	# On a busy machine it is looked for before the shell of the replay has made it.
	: > running
	device_test acl-conv-g52/recording.gpr nano 0 $(< acl-conv-g52/words) > running 2> ended & endless=$!
	for ((tries = 0; tries < 60; tries++)); do
		[ "$(< running)" = running ] && break
		read -r -t 0.5 -u 9 || true
	done
	read -r -t 1 -u 9 || true
	[ -z "$1" ] || echo Y > $1
	echo freeze > /sys/power/state
	if wait $endless; then exit 1; fi
}
sleep_under_replay
say "slept under a replay: $(< ended)"
replay nano 2 > again
say "after it: $(< again)"
[ "$(device_test pages)" = 0 ]
[ "$(domain unpowered)" = $before ]

# A clock that does not come back from sleep: the GPU is gone, and no register of it is touched.
echo $gpu > /sys/bus/platform/drivers/gpureplay-nano/unbind
rmmod gpureplay_nano
load no-clock.ko
replay nano 1 > again
sleep_under_replay /sys/module/gpureplay_nano/parameters/no_clock
say "slept, and the clock stayed off: $(< ended)"
if replay nano 1 > again 2> refused; then exit 1; fi
say "after it: $(< refused)"
[ "$(domain unpowered)" = $before ]
echo N > /sys/module/gpureplay_nano/parameters/no_clock
echo $gpu > /sys/bus/platform/drivers/gpureplay-nano/unbind
echo $gpu > /sys/bus/platform/drivers_probe
replay nano 1 > again
say "bound again: $(< again)"
[ "$(domain unpowered)" = $before ]

# A kernel that is locked down: the driver gives away nothing that it would have to refuse.
echo integrity > /sys/kernel/security/lockdown
replay nano 1 > again
say "locked down: $(< again)"
[ "$(domain unpowered)" = $before ]
say "SLEPT AND WOKE"
echo o > /proc/sysrq-trigger
read -r -t 10 -u 9
