# What an app may do at the boundary itself, and what may befall a trace, on the stock driver without root. Prints what became of each.

# verdict NAME COMMAND...: says whether a command fails; what it complains of goes to NAME.said.
verdict() {
	local name=$1
	shift
	if as "$@" > /dev/null 2>> $name.said; then echo "$name: well"; else echo "$name: refused"; fi
}

for name in signals import freed purged unlisted fork files fault; do
	as driver_cases $name > $name.plain
	as gpureplay record --raw $name.trace -- sh -c "driver_cases $name > $name.out" 2> $name.said || true
	[ "$(< $name.plain)" = "$(< $name.out)" ] || echo "$name: another answer"
	if [ -e $name.trace ]; then verdict $name gpureplay info $name.trace; else echo "$name: refused"; fi
done
# The compiler refuses what the recorder only tells.
for name in files fault; do verdict $name-compiled gpureplay compile $name.trace -o $name; done

# A library that keeps buffers of each job from the driver, above the recorder.
verdict deceived gpureplay record --raw deceived.trace -- \
	env LD_PRELOAD=/opt/gpureplay/lib/libforgetful.so:/opt/gpureplay/lib/libgpureplay_recorder.so APP
verdict idle gpureplay record --raw idle.trace -- true
verdict twice gpureplay record --raw twice.trace -- sh -c "APP && APP"
mkdir -m 777 /tmp/full
mount -t tmpfs -o size=20k,mode=777 none /tmp/full
verdict full env TMPDIR=/tmp/full gpureplay record -o full -- sh -c "APP && touch full.done"
[ -e full.done ] && echo "full: the app ended"
cp *.trace *.said /share/
