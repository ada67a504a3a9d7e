# SPDX-License-Identifier: MIT OR Apache-2.0
# In the guest: replays through Arm's own driver by a user who may open its device, and no more. See kbase.rs and devices/user.sh.
modules=/opt/gpureplay/kbase
lsmod | grep -q gpureplay_recorder || insmod $modules/gpureplay_recorder.ko
insmod $modules/mali_kbase.ko
echo always_on > /sys/class/misc/mali0/device/power_policy
let_in /dev/mali0
mountpoint -q /sys/kernel/debug || mount -t debugfs none /sys/kernel/debug
rm -rf /tmp/kbase
mkdir /tmp/kbase
chmod 777 /tmp/kbase
share=$PWD
cp -r recordings cases by-model inputs /tmp/kbase
cd /tmp/kbase

# Who may not, is told what to do.
first=$(head -n 1 cases | cut -d' ' -f2)
if "${stranger[@]}" gpureplay run recordings/$first --device kbase 2> refused; then exit 1; fi
grep 'permission denied; join the group render' refused
"${user[@]}" gpureplay doctor > doctor || true
grep '^ok   kbase: /dev/mali0, kbase K:r' doctor
grep '^ok   run --device kbase: ' doctor
grep '^ok   record --recorder user: ' doctor

every_case kbase ', kbase K:r'
echo "# $(wc -l < cases) cases of $(ls recordings | wc -l) recordings: outputs and states are the model's, bit for bit"

# A replay is an app like others: the recorder in user space records it once, and a user replays what it recorded with other inputs.
for ((run = 0; run < 3; run++)); do
	rm -rf user-recording user.npy
	"${user[@]}" gpureplay record --recorder user -o user-recording --reads x=inputs/x.npy --reads y=inputs/y.npy \
		--writes out=user.npy -- gpureplay run --force --device kbase recordings/saxpy-g52 \
		--input x=inputs/x.npy --input y=inputs/y.npy --output out=user.npy
	"${user[@]}" gpureplay run user-recording --force --device kbase \
		--input x=inputs/x2.npy --input y=inputs/y2.npy --output out=user2.npy
done
cp user.npy user2.npy "$share"
cp -r user-recording "$share"
echo "# a replay was recorded by a library in it, and replayed with other inputs"
# Threads, several atoms of one submission, and pages that come when the GPU touches them.
record_raw() { # NAME COMMAND
	rm -f user-$1.*
	"${user[@]}" gpureplay record --recorder user --raw user-$1.trace -- sh -c "$2 > user-$1.bin"
}
for ((run = 0; run < 5; run++)); do record_raw atoms kbase-atoms; done
record_raw grow kbase-grow
cp user-{atoms,grow}.{trace,bin} "$share"
same_atoms() { [ "$(sha256sum < user-atoms.bin)" = "$(sha256sum < user-$1.bin)" ]; }
for word in select pselect; do
	record_raw $word "kbase-atoms $word"
	same_atoms $word
done
for word in jit epoll ring; do
	if record_raw $word "kbase-atoms $word" > refused 2>&1; then cat refused; exit 1; fi
	grep -E "JIT|epoll" refused
	same_atoms $word
done
echo "# clients with threads and growing memory were recorded by a library in them"

# Addresses that the process has already, by a library in it: data has no other place, code goes on to the next.
with_taken() { # ADDRESSES
	rm -f taken.npy
	"${user[@]}" env LD_PRELOAD=/opt/gpureplay/shared/kbase-taken TAKEN="$1" gpureplay run recordings/saxpy-g52 \
		--device kbase --input x=inputs/x.npy --input y=inputs/y.npy --output out=taken.npy
}
if with_taken 'a009000' > refused 2>&1; then exit 1; fi
grep 'setarch -R' refused
with_taken 'c001000 c003000'
[ "$(sha256sum < taken.npy)" = "$(sha256sum < user.npy)" ]
echo "# taken addresses: an error for data, another place for code"

# A process that may not have so many addresses.
if "${user[@]}" prlimit --as=$((4 << 30)) gpureplay run recordings/$first --device kbase > refused 2>&1; then exit 1; fi
grep 'not enough memory' refused

# Each call in turn finds no memory: an error that says something, or the right answer, and the next run is right.
"${user[@]}" device_test faulty 1 12 gpureplay run --force recordings/saxpy-g52 --device kbase \
	--input x=inputs/x.npy --input y=inputs/y.npy --expect out=user.npy --output out=taken.npy | tee said
if grep -E 'please report|panicked' said; then exit 1; fi
with_taken ''
[ "$(sha256sum < taken.npy)" = "$(sha256sum < user.npy)" ]

# Chains that no verifier saw; a neighbour goes on. Addresses are not random: the program is no command, whose own lie apart.
words=$(words_of saxpy-kbase-g52)
test=("${user[@]}" setarch -R device_test)
"${test[@]}" recordings/saxpy-kbase-g52/recording.gpr kbase 0 $words > neighbour 2>&1 & neighbour=$!
until grep -qs running neighbour; do kill -0 $neighbour; sleep 0.1; done
for twist in type loop outside pointer above code long; do
	"${test[@]}" hostile recordings/saxpy-kbase-g52/recording.gpr $twist $words > said
	tail -n 1 said
	kill -0 $neighbour
done
kill -9 $neighbour
wait $neighbour 2> /dev/null || [ $? = 137 ]
echo "# 7 kinds of wrong chains: an error each time, the next replay and a neighbour's were right"

# A process that dies, loading or in the middle of a run.
RANDOM=1
users=/sys/kernel/debug/mali0/gpu_memory
[ -r $users ]
contexts() { grep -c 'kctx-' $users || true; }
none=$(contexts)
line=($(grep -m 1 ' digits-g52 ' cases))
words=${line[*]:2}
for ((kill = 0; kill < KILLS; kill++)); do
	"${user[@]}" gpureplay run recordings/digits-g52 --device kbase --repeat 100000 > endless 2>&1 & victim=$!
	sleep 0.$(printf %03d $((RANDOM % 500)))
	kill -9 $victim || { cat endless; exit 1; }
	wait $victim 2> /dev/null || [ $? = 137 ]
	rm -rf out
	"${user[@]}" mkdir out
	"${user[@]}" gpureplay run recordings/digits-g52 --device kbase ${words//@/out} > said
	same out by-model/${line[0]}
done
[ "$(contexts)" = "$none" ]
echo "# $KILLS processes killed, the next run was right each time, and no context was left"
cd /
rmmod mali_kbase
echo KBASE AGREES
