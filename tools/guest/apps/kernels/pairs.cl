// SPDX-License-Identifier: MIT OR Apache-2.0
// Pairs of kernels of one interface as a programmer sees it: one is recorded, the other takes its place.

kernel void axpy(global const float *x, global const float *y, global float *out, float a)
{
	int i = get_global_id(0);
	out[i] = fma(a, x[i], y[i]);
}

kernel void axmy(global const float *x, global const float *y, global float *out, float a)
{
	int i = get_global_id(0);
	out[i] = fma(-a, y[i], x[i]) * x[i];
}

// Four numbers of each thread.
kernel void axpy4(global const float *x, global const float *y, global float *out, float a)
{
	int i = get_global_id(0);
	vstore4(fma((float4)(a), vload4(i, y), vload4(i, x)), i, out);
}

// Does not read y: other words of the arguments become uniforms.
kernel void scale(global const float *x, global const float *y, global float *out, float a)
{
	int i = get_global_id(0);
	out[i] = a * x[i];
}

kernel void wave(global const float *x, global const float *y, global float *out, float a)
{
	int i = get_global_id(0);
	out[i] = sin(a * x[i]) + exp(-fabs(y[i]));
}

// Knows its place in the work group, and waits for nobody.
kernel void by_place(global const float *x, global const float *y, global float *out, float a)
{
	int i = get_global_id(0);
	out[i] = fma(a, x[i], y[i]) * get_local_id(0);
}

// Softmax of each work group's numbers; threads wait for each other.
kernel void softmax_group(global const float *x, global const float *y, global float *out, float a)
{
	local float shared[64];
	int i = get_global_id(0), here = get_local_id(0), count = get_local_size(0);
	float value = exp(a * x[i] + y[i] - 8);
	shared[here] = value;
	barrier(CLK_LOCAL_MEM_FENCE);
	float sum = 0;
	for (int k = 0; k < count; k++)
		sum += shared[k];
	out[i] = value / sum;
}

// The same over rows of 32 numbers, by each thread for itself.
kernel void softmax_row(global const float *x, global const float *y, global float *out, float a)
{
	int i = get_global_id(0), first = i / 32 * 32;
	float sum = 0;
	for (int k = first; k < first + 32; k++)
		sum += exp(a * x[k] + y[k] - 8);
	out[i] = exp(a * x[i] + y[i] - 8) / sum;
}

// The numbers of a work group in the other order.
kernel void reverse(global const float *x, global const float *y, global float *out, float a)
{
	local float shared[64];
	int i = get_global_id(0), here = get_local_id(0), count = get_local_size(0);
	shared[here] = a * x[i] + y[i];
	barrier(CLK_LOCAL_MEM_FENCE);
	out[i] = shared[count - 1 - here];
}

// The numbers of a work group, each moved on by one.
kernel void rotate_group(global const float *x, global const float *y, global float *out, float a)
{
	local float shared[64];
	int i = get_global_id(0), here = get_local_id(0), count = get_local_size(0);
	shared[here] = y[i] - a * x[i];
	barrier(CLK_LOCAL_MEM_FENCE);
	out[i] = shared[here + 1 == count ? 0 : here + 1];
}

// A permutation that only memory of the thread's own can hold.
kernel void shuffle(global const float *x, global const float *y, global float *out, float a)
{
	float own[16];
	int i = get_global_id(0), first = i / 16 * 16;
	for (int k = 0; k < 16; k++)
		own[(int)(x[first + k] * 4) * 7 + k & 15] = a * x[first + k] + y[first + k];
	float sum = 0;
	for (int k = 0; k < 16; k++)
		sum = sum * 0.5f + own[(k + (int)(y[i] * 4)) & 15];
	out[i] = sum;
}

kernel void steps(global const float *x, global const float *y, global float *out, float a)
{
	int i = get_global_id(0), n = (int)(x[i] * 4) % 7;
	float v = y[i];
	while (n-- > 0)
		v = fma(v, 0.5f, a);
	out[i] = v;
}

kernel void nearest(global const float *x, global const float *y, global float *out, float a)
{
	int i = get_global_id(0), best = 0;
	for (int k = 1; k < 16; k++)
		if (fabs(a * x[k] - y[i]) < fabs(a * x[best] - y[i]))
			best = k;
	out[i] = best;
}

// Whole numbers: the sums of all that fall into a cell.
kernel void count_low(global const uint *x, global const uint *y, global uint *out, int a)
{
	int i = get_global_id(0);
	atomic_add(&out[x[i] >> 16 & 15], y[i] >> 20);
	atomic_max(&out[16 + (i & 15)], x[i] * a);
}

kernel void count_high(global const uint *x, global const uint *y, global uint *out, int a)
{
	int i = get_global_id(0);
	atomic_add(&out[32 + (y[i] >> 18 & 15)], (x[i] >> 20) * a);
	atomic_xor(&out[48 + (i & 15)], y[i]);
}

kernel void bytes_up(global const uchar *x, global const uchar *y, global uchar *out, int a)
{
	int i = get_global_id(0);
	out[i] = add_sat(x[i], (uchar)(y[i] * a >> 3));
}

kernel void bytes_down(global const uchar *x, global const uchar *y, global uchar *out, int a)
{
	int i = get_global_id(0);
	out[i] = rhadd(y[i], (uchar)(x[i] ^ a));
}
