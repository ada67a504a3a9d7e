# SPDX-License-Identifier: MIT OR Apache-2.0
# In the guest: an ordinary user, recordings, and what the model answers to their cases. Before panfrost.sh and kbase.sh.
set -eo pipefail
PATH=$PATH:/opt/gpureplay/nano

# As udev does it on Debian.
let_in() { # DEVICE
	getent group render > /dev/null || echo render:x:992: >> /etc/group
	chgrp render $1
	chmod 660 $1
	# Arrays, not functions: a command in the background is then the process that $! names.
	nobody=(setpriv --reuid=65534 --regid=65534 --no-new-privs)
	user=("${nobody[@]}" --groups=$(getent group render | cut -d: -f3) --)
	stranger=("${nobody[@]}" --clear-groups --)
}
words_of() { # RECORDING: what device_test takes for its first case
	local number name words word
	read -r number name words <<< "$(grep -m1 " $1 " cases)"
	for word in ${words//--input/}; do
		case $word in
		--output) ;;
		*=@/*) echo "${word%%=*}=by-model/$number/${word##*@/}" ;;
		*) echo "$word" ;;
		esac
	done
}
same() { # FOLDER FOLDER: the same files with the same bytes
	local file
	[ "$(ls $1)" = "$(ls $2)" ]
	for file in $1/*; do [ "$(sha256sum < $file)" = "$(sha256sum < $2/${file##*/})" ]; done
}
every_case() { # DEVICE PATTERN: outputs and states of all cases; what a run says
	local number name words
	while read -r number name words; do
		rm -rf out
		"${user[@]}" mkdir out
		"${user[@]}" gpureplay run recordings/$name --device $1 ${words//@/out} > said
		grep -q "$2" said
		same out by-model/$number
	done < cases
}
