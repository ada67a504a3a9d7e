# SPDX-License-Identifier: MIT OR Apache-2.0
# In the guest, after devices/user.sh: every $STRIDE-th call of a replay to the kernel's driver, $DEVICE, fails once. See panthor.rs.
for ((tries = 0; tries < 200; tries++)); do [ -e /dev/dri/renderD128 ] && break; sleep 0.05; done
let_in /dev/dri/renderD128
cp -r recordings cases by-model /tmp
cd /tmp
for name in $(ls recordings); do
	# In one process, which costs little: the run that failed is done once more, and the next is right.
	"${user[@]}" device_test faulty:always $(((STRIDE + 4) / 5)) 5 device_test again recordings/$name/recording.gpr $DEVICE $(words_of $name)
	# The command: it ends with an error that says something, or with the model's answer. One that differs is told on standard output.
	read -r number same words <<< "$(grep -m1 " $name " cases)"
	expected=() option=
	for word in $words; do
		if [ "$option" = --output ]; then expected+=(--expect "${word/@/by-model/$number}"); fi
		option=$word
	done
	[ ${#expected[@]} -gt 0 ]
	"${user[@]}" mkdir -p out
	"${user[@]}" device_test faulty $STRIDE 12 \
		gpureplay run --force recordings/$name --device $DEVICE ${words//@/out} "${expected[@]}" | tee said
	if grep -E 'please report|panicked' said; then exit 1; fi
	every_case $DEVICE ", $DEVICE\$"
done
echo EVERY NEXT RUN WAS RIGHT
