# SPDX-License-Identifier: MIT OR Apache-2.0
# In a guest whose GPU has no driver yet: what befalls a recorder around its recordings. See recorder.rs.
trial() { # NAME: runs the function of that name, and says how it ended
	local code
	(set -eo pipefail; "$1")
	code=$?
	# What a trial that failed has left.
	for process in /proc/[0-9]*; do
		if [ "$(cat $process/comm 2> /dev/null)" = cat ]; then
			kill -CONT ${process#/proc/}
			kill ${process#/proc/}
		fi
	done 2> /dev/null
	[ $code = 0 ] && echo "$1: well" || echo "$1: failed with $code"
}
recording() { # FILE: begins a recording; the reader is $reader
	cat /dev/gpureplay > "$1" & reader=$!
	for ((tries = 0; tries < 100; tries++)); do
		[[ $(readlink /proc/$reader/fd/*) = *gpureplay* ]] && break
		sleep 0.1
	done
}
stop() {
	echo stop > /dev/gpureplay
	wait $reader
}
state() { # PID: nothing if there is none
	sed -n 's/^State:\t\(.\).*/\1/p' /proc/$1/status 2> /dev/null || true
}

# A driver of which there is only the binary goes and comes again: both of its resets are recorded.
probes() {
	local run
	for run in 1 2; do
		recording binary-$run
		insmod /opt/gpureplay/board/gpureplay_binary.ko
		stop
		rmmod gpureplay_binary
		[ -s binary-$run ]
	done
}

# Tables and pages that may be freed meanwhile: what the kernel does not map is not read, and the log says so.
unmapped() {
	local what
	for what in table page; do
		recording unmapped-$what
		insmod /opt/gpureplay/board/gpureplay_binary.ko unmapped=$what
		stop
		rmmod gpureplay_binary
	done
}

# After a page fault that is tried again, its mapping may be gone.
retried() {
	recording /dev/null
	insmod /opt/gpureplay/board/gpureplay_binary.ko retried=1
	stop
	rmmod gpureplay_binary
}

# While opening the recorder waits for an idle GPU, other devices open.
open() {
	local begin end
	echo on > $gpu/power/control
	(cat /dev/gpureplay > /dev/null 2>&1 || touch refused) &
	sleep 1
	begin=$(date +%s%N)
	: < /dev/cpu_dma_latency
	end=$(date +%s%N)
	wait
	echo auto > $gpu/power/control
	echo "another device opened after $(((end - begin) / 1000000)) ms"
	[ -e refused ]
	[ $((end - begin)) -lt 1000000000 ]
}

# Memory for lists of pages comes in the app's own call, not where a job's fence may wait for it.
fence() {
	local events=/sys/kernel/tracing
	mountpoint -q $events || mount -t tracefs none $events
	echo 0 > $events/events/enable
	echo 'p:lists __kvmalloc_node_noprof size=size:u64 flags=flags:x32' > $events/kprobe_events
	# More than 1.5 MB, and may reclaim.
	echo 'size >= 1500000 && flags & 0x400' > $events/events/kprobes/lists/filter
	echo > $events/trace
	echo 1 > $events/events/kprobes/lists/enable
	recording hoarded
	LD_PRELOAD=/opt/gpureplay/lib/libhoarder.so APP > /dev/null
	stop
	echo 0 > $events/events/kprobes/lists/enable
	grep ': lists' $events/trace
	! grep -E '^ *(kworker|irq)/.*: lists' $events/trace > taken
}

# Who writes notes while nobody reads can be ended.
note() {
	local long tries ended
	echo 4 > /sys/module/gpureplay_recorder/parameters/log_mib
	recording /dev/null
	kill -STOP $reader
	long=$(printf '%4000s' x)
	(while echo "note $long" > /dev/gpureplay; do :; done) & writer=$!
	for ((tries = 0; tries < 100; tries++)); do
		[[ $(state $writer) = [DI] ]] && break
		sleep 0.2
	done
	[[ $(state $writer) = [DI] ]]
	kill -KILL $writer
	sleep 1
	ended=$(state $writer)
	kill -CONT $reader
	wait $writer || true
	stop
	echo 64 > /sys/module/gpureplay_recorder/parameters/log_mib
	echo "a writer that was killed has state $ended"
	[[ $ended = "" || $ended = Z ]]
}

# Who does not want to wait for records does not wait for another reader either.
nonblocking() {
	local said
	exec 7< /dev/gpureplay
	cat <&7 > /dev/null & reader=$!
	sleep 1
	said=$(LC_ALL=C timeout -s KILL 5 dd iflag=nonblock bs=64 count=1 <&7 2>&1 || true)
	exec 7<&-
	stop
	echo "dd said: $said"
	[[ $said = *"temporarily unavailable"* ]]
}

gpu=$(echo /sys/bus/platform/devices/*.gpu)
insmod /opt/gpureplay/probes/gpureplay_recorder.ko
insmod /opt/gpureplay/probes/gpureplay_kprobes.ko driver=gpureplay_binary
for name in probes unmapped retried; do trial $name; done
rmmod gpureplay_kprobes gpureplay_recorder
modprobe -a gpu-sched drm_shmem_helper
for module in $(< /opt/gpureplay/modules/order); do insmod /opt/gpureplay/modules/$module; done
for ((tries = 0; tries < 200; tries++)); do
	[ -e /dev/dri/renderD128 ] && break
	sleep 0.05
done
for name in open fence note nonblocking; do trial $name; done
