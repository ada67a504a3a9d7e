// SPDX-License-Identifier: MIT OR Apache-2.0
// What owners of boards can tell: bits of special functions, subnormal numbers, conversions. Recorded as recordings/bits-GPU by
// bits.py. A row of results for each name in replayer/cli/src/common/machine_bits.rs, in this order.
kernel void bits(global const uint *x, global uint *out)
{
	size_t i = get_global_id(0), n = get_global_size(0), row = 0;
	uint word = x[i];
	float f = as_float(word);
	// From memory, so that no compiler knows them: 1 and 0 are the last two.
	float one = as_float(x[n - 2]), zero = as_float(x[n - 1]);
	ushort narrow;
#define PUT(value) out[row++ * n + i] = (value)
	PUT(as_uint(native_recip(f)));
	PUT(as_uint(native_rsqrt(f)));
	PUT(as_uint(native_exp2(f)));
	PUT(as_uint(native_log2(f)));
	PUT(as_uint(native_sin(f)));
	PUT(as_uint(native_cos(f)));
	PUT(as_uint(f * one));
	PUT(as_uint(f + zero));
	PUT(as_uint(fma(f, one, zero)));
	PUT(as_uint(fmax(f, zero)));
	PUT((uint)convert_int(f));
	PUT(convert_uint(f));
	PUT((uint)convert_int_sat(f));
	PUT((uint)convert_int_rte(f));
	PUT(as_uint(convert_float((int)word)));
	PUT(as_uint(convert_float(word)));
	PUT(as_uint(vload_half(0, (global const half *)(x + i))));
	vstore_half(f, 0, (private half *)&narrow);
	PUT(narrow);
	vstore_half_rtz(f, 0, (private half *)&narrow);
	PUT(narrow);
}
