// SPDX-License-Identifier: MIT OR Apache-2.0
// Kernels of the kinds that programs are made of: element-wise work of every integer width, indices, control flow,
// scratch memory, local memory with barriers, atomics.

kernel void scale_add(global const float *x, global float *y, float scale)
{
	size_t i = get_global_id(0);
	y[i] = fma(scale, x[i], y[i]);
}

kernel void scale_add_vector(global const float4 *x, global float4 *y, float scale)
{
	size_t i = get_global_id(0);
	y[i] = fma((float4)(scale), x[i], y[i]);
}

kernel void bytes(global const uchar *x, global uchar *y)
{
	size_t i = get_global_id(0);
	y[i] = add_sat(x[i], (uchar)7) ^ (uchar)(x[i] >> 3);
}

kernel void shorts(global const short *x, global short *y)
{
	size_t i = get_global_id(0);
	y[i] = (short)(x[i] * 11 - (x[i] >> 5));
}

kernel void longs(global const long *x, global long *y, long factor)
{
	size_t i = get_global_id(0);
	long v = x[i];
	y[i] = (v * factor) ^ (v >> 9) ^ (v / (factor + 2)) ^ (v % 1000003);
}

kernel void divide(global const int *x, global int *y, int divisor)
{
	size_t i = get_global_id(0);
	y[i] = x[i] / divisor * 3 + x[i] % divisor + (int)((uint)x[i] / 13u);
}

kernel void bit_operations(global const int *x, global int *y)
{
	size_t i = get_global_id(0);
	uint u = (uint)x[i];
	uint r = popcount(u) + (clz(u) << 6) + rotate(u, 9u) + mul_hi(u, 0x9e3779b9u) + (u << (i & 15)) +
		 (u >> (i & 7)) + min(u, 4000u) + abs_diff(x[i], 77) + hadd(u, 3u) + sub_sat(u, 1000000000u);
	y[i] = (int)r + (x[i] >> (i & 11)) + max(x[i], -9) + mad24(x[i] & 0xffff, 5, -4);
}

kernel void indices(global int *y)
{
	size_t at = get_global_id(0) + get_global_size(0) * (get_global_id(1) + get_global_size(1) * get_global_id(2));
	y[at] = get_global_id(0) + 100 * get_global_id(1) + 10000 * get_global_id(2) + 1000003 * get_local_id(0) +
		get_local_id(1) * 7 + get_local_id(2) * 13 + 17 * get_group_id(0) + 19 * get_group_id(1) +
		23 * get_group_id(2) + get_num_groups(1) * 29 + get_local_size(0) * 31;
}

kernel void loop_with_exits(global const int *x, global int *y)
{
	int i = get_global_id(0), sum = 0;
	int turns = x[i] & 63;
	for (int j = 0; j < turns; j++) {
		if ((x[j] ^ j) & 1) {
			sum += 3 * j;
			continue;
		}
		if (sum > 900)
			break;
		sum ^= x[j] & 255;
	}
	y[i] = sum;
}

kernel void branches(global const int *x, global int *y)
{
	int i = get_global_id(0), r = 0;
	switch (x[i] & 7) {
	case 0: r = x[i] * 3; break;
	case 1: r = -i; break;
	case 3: r = 11;
		for (int k = 0; k < (i & 15); k++)
			r = r * 5 + x[k];
		break;
	case 6: r = 1; /* falls through */
	case 7: r += 40; break;
	default: r = -1;
	}
	y[i] = r;
}

kernel void scratch_memory(global const int *x, global int *y, int count)
{
	int table[96], i = get_global_id(0), sum = 0;
	for (int j = 0; j < 96; j++)
		table[j] = x[j] * (j + 1) + i;
	for (int j = 0; j < count; j++)
		sum = sum * 31 + table[((uint)x[i] + j * 11u) % 96u];
	y[i] = sum;
}

kernel void early_return(global const int *x, global int *y, int limit)
{
	int i = get_global_id(0);
	if (i >= limit)
		return;
	if (x[i] == 0)
		return;
	y[i] = 1000 / x[i];
}

kernel void group_sum(global const int *x, global int *y, local int *part)
{
	int l = get_local_id(0);
	part[l] = x[get_global_id(0)];
	barrier(CLK_LOCAL_MEM_FENCE);
	for (int half_size = get_local_size(0) / 2; half_size; half_size /= 2) {
		if (l < half_size)
			part[l] += part[l + half_size];
		barrier(CLK_LOCAL_MEM_FENCE);
	}
	if (l == 0)
		y[get_group_id(0)] = part[0];
}

kernel void atomics(global const int *x, global int *y)
{
	int v = x[get_global_id(0)];
	atomic_add(y, v);
	atomic_min(y + 1, v);
	atomic_max(y + 2, v);
	atomic_or(y + 3, v & 0xff00);
	atomic_xor(y + 4, v);
	atomic_and(y + 5, v | 0x0f0f0f0f);
	atomic_inc(y + 6);
	atomic_dec(y + 7);
	atomic_sub(y + 8 + (v & 7), 3);
}

kernel void histogram(global const uchar *x, global int *y)
{
	local int bin[256];
	int l = get_local_id(0), size = get_local_size(0);
	for (int i = l; i < 256; i += size)
		bin[i] = 0;
	barrier(CLK_LOCAL_MEM_FENCE);
	for (int i = 0; i < 8; i++)
		atomic_inc(&bin[x[get_global_id(0) * 8 + i]]);
	barrier(CLK_LOCAL_MEM_FENCE);
	for (int i = l; i < 256; i += size)
		if (bin[i])
			atomic_add(&y[i], bin[i]);
}
