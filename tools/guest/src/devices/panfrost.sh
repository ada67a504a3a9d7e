# SPDX-License-Identifier: MIT OR Apache-2.0
# In the guest: replays through the kernel's own driver, $DEVICE, by a user who is no more than a member of the group render. See panfrost.rs and user.sh.
if [ $REPAIRED = 1 ]; then
	modprobe -a $(modinfo -F depends panfrost | tr , ' ')
	insmod /opt/gpureplay/upstream/panfrost.ko
fi
for ((tries = 0; tries < 200; tries++)); do [ -e /dev/dri/renderD128 ] && break; sleep 0.05; done
echo "# Linux $(uname -r)"

let_in /dev/dri/renderD128
cp -r recordings cases by-model saxpy /tmp
cd /tmp
memory() { awk '/^Shmem:/ { print $2 }' /proc/meminfo; }

# Who may not, is told what to do.
if "${stranger[@]}" gpureplay run recordings/$(ls recordings | head -n 1) --device $DEVICE 2> refused; then exit 1; fi
grep 'permission denied; join the group render' refused
"${user[@]}" gpureplay doctor > doctor || true
grep "^ok   $DEVICE: /dev/dri/renderD128 " doctor

# Buffers at addresses of the caller's choice, on a driver that has them.
if [ $REPAIRED = 1 ]; then
	"${user[@]}" /opt/gpureplay/upstream/fixed /dev/dri/renderD128
	echo "# PANFROST_BO_FIXED: all cases right"
fi

# A report of the machine, by a command that has its recordings beside it, as the package has.
mkdir -p at/bin at/share/gpureplay
cp "$(command -v gpureplay)" at/bin
ln -s /tmp/recordings at/share/gpureplay/recordings
rm -f report.txt
at/bin/gpureplay doctor --report report.txt || true
grep "^ok   run --device $DEVICE: " report.txt
grep '  GPU_ID = ' report.txt
for name in saxpy-$GPU digits-$GPU; do
	[ ! -e recordings/$name ] || grep "^  $name on $DEVICE: right" report.txt
done

# All cases, as often as asked.
for ((run = 0; run < RUNS; run++)); do
	every_case $DEVICE ", $DEVICE\$"
done
echo "# $((RUNS * $(wc -l < cases))) replays of $(wc -l < cases) cases of $(ls recordings | wc -l) recordings: outputs and states are the model's, bit for bit"

# Without --device it is the default.
first=$(head -n 1 cases | cut -d' ' -f2)
"${user[@]}" gpureplay run recordings/$first > said
grep ", $DEVICE\$" said

# Chains that no verifier saw, beside a neighbour.
if [ $WRONG != 0 ]; then
	rm -f neighbour
	"${user[@]}" device_test recordings/digits-$GPU/recording.gpr $DEVICE 0 $(words_of digits-$GPU) > neighbour 2>&1 & neighbour=$!
	until grep -qs running neighbour; do sleep 0.1; done
	timeouts() { dmesg | grep -cE 'gpu sched timeout|progress timeout|job timeout' || true; }
	hostile=$(ls recordings | grep -m1 saxpy || ls recordings | head -n 1)
	for twist in $TWISTS; do
		[[ $twist != *long && $twist != *endless ]] || late=$(timeouts)
		for ((time = 0; time < WRONG; time++)); do
			"${user[@]}" device_test hostile recordings/$hostile/recording.gpr $twist $(words_of $hostile) > said
			[ $time != 0 ] || tail -n 1 said
			kill -0 $neighbour
		done
	done
	kill -9 $neighbour
	wait $neighbour 2> /dev/null || [ $? = 137 ]
	echo "# $late faults were found by a time-out"
	[ $REPAIRED = 0 ] || [ $late = 0 ]
	echo "# $(wc -w <<< "$TWISTS") kinds of wrong chains or streams, $WRONG times each: an error each time, the next replay and a neighbour's were right"
fi

# A process that dies, loading or in the middle of a run.
RANDOM=$SEED
# The same answer each time: nothing goes on from state to state.
names=($(cut -d' ' -f2 cases | uniq | grep -vwF "$(grep -e --state-out cases | cut -d' ' -f2 || echo none)"))
before=$(memory)
for ((kill = 0; kill < KILLS; kill++)); do
	name=${names[kill % ${#names[@]}]}
	rm -f endless
	"${user[@]}" device_test recordings/$name/recording.gpr $DEVICE 0 $(words_of $name) > endless 2>&1 & victim=$!
	if ((kill % 3 != 2)); then until grep -qs running endless; do sleep 0.02; done; fi
	sleep 0.$(printf %03d $((RANDOM % 200)))
	kill -9 $victim || { cat endless; exit 1; }
	wait $victim 2> /dev/null || [ $? = 137 ]
	"${user[@]}" device_test recordings/$name/recording.gpr $DEVICE 1 $(words_of $name) > /dev/null
done
if [ $KILLS != 0 ]; then
	rm -f endless
	sleep 1
	left=$(($(memory) - before))
	((left < 1024))
	echo "# $KILLS processes killed, the next run was right each time, all memory came back"
fi

# An OpenCL program and two that replay. Alone, it is right (or so the model says, where saxpy is recorded).
if [ $APPS != 0 ]; then
	live() { saxpy --x saxpy/x.npy --y saxpy/y.npy --a 2.5 --out $1 > /dev/null; }
	live alone.npy
	wanted=by-model/$({ grep -m1 " saxpy-$GPU " cases || true; } | cut -d' ' -f1)/out.npy
	[ ! -e $wanted ] || [ "$(sha256sum < alone.npy)" = "$(sha256sum < $wanted)" ]
	other=$(ls recordings | grep -m1 perceptron || echo digits-$GPU)
	"${user[@]}" device_test recordings/digits-$GPU/recording.gpr $DEVICE 0 $(words_of digits-$GPU) > one 2>&1 & one=$!
	"${user[@]}" device_test recordings/$other/recording.gpr $DEVICE 0 $(words_of $other) > two 2>&1 & two=$!
	for ((run = 0; run < APPS; run++)); do
		rm -f live.npy
		live live.npy
		[ "$(sha256sum < live.npy)" = "$(sha256sum < alone.npy)" ]
	done
	kill -0 $one || { cat one; exit 1; }
	kill -0 $two || { cat two; exit 1; }
	kill -9 $one $two
	wait $one $two 2> /dev/null || [ $? = 137 ]
	if grep differs one two; then exit 1; fi
	echo "# $APPS runs of an OpenCL program beside two replaying ones: all right"
fi
echo THE DRIVER AGREES
