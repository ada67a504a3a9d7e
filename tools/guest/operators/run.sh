#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# In the guest: runs the cases of /share behind the last one in its log, and goes on behind a case that ends the program.
cd /share || exit 2
touch log
# A run that was cut off may have left half a line: its case runs again.
[ -z "$(tail -c 1 log)" ] || sed -i '$d' log
cases=$(wc -l < cases.txt)
next() { local last; last=$(grep -oE '^[0-9]+ ' log | tail -n 1); echo $((${last:--1} + 1)); }
while [ "$(next)" -lt "$cases" ]; do
	acl_operators --cases cases.txt --from "$(next)" >> log && exit 0
	echo "$(next) crash the program ended during this case" >> log
done
