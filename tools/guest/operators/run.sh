#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# In the guest: runs all cases of /share, and goes on behind a case that ends the program.
cd /share || exit 2
: > log
next=0
cases=$(wc -l < cases.txt)
while [ "$next" -lt "$cases" ]; do
	acl_operators --cases cases.txt --from "$next" >> log && exit 0
	last=$(grep -oE '^[0-9]+ ' log | tail -n 1)
	next=$((${last:--1} + 2))
done
