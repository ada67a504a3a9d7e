// SPDX-License-Identifier: MIT OR Apache-2.0
// The kernels of `cargo xtask bench model`, as people write them. The model runs what Mesa makes of them, pocl compiles them.

// c = a x b, square matrices of n x n with n a multiple of 32. A work group makes 32 x 32 elements, a thread 4 x 4.
kernel __attribute__((reqd_work_group_size(8, 8, 1))) void gemm(global const float4 *a, global const float4 *b,
								global float4 *c, int n)
{
	local float a_tile[16][32];
	local float4 b_tile[16][8];
	int lx = get_local_id(0), ly = get_local_id(1), thread = ly * 8 + lx, columns = n / 4;
	int row = thread / 2, depth = thread % 2 * 8, line = thread / 4, column = thread % 4 * 2;
	float4 s0 = 0, s1 = 0, s2 = 0, s3 = 0;

	a += (get_group_id(1) * 32 + row) * columns + depth / 4;
	b += line * columns + get_group_id(0) * 8 + column;
	for (int k0 = 0; k0 < n; k0 += 16) {
		float4 a0 = a[0], a1 = a[1];
		a_tile[depth][row] = a0.x;
		a_tile[depth + 1][row] = a0.y;
		a_tile[depth + 2][row] = a0.z;
		a_tile[depth + 3][row] = a0.w;
		a_tile[depth + 4][row] = a1.x;
		a_tile[depth + 5][row] = a1.y;
		a_tile[depth + 6][row] = a1.z;
		a_tile[depth + 7][row] = a1.w;
		b_tile[line][column] = b[0];
		b_tile[line][column + 1] = b[1];
		barrier(CLK_LOCAL_MEM_FENCE);
		for (int k = 0; k < 16; k++) {
			float4 av = vload4(ly, a_tile[k]), bv = b_tile[k][lx];
			s0 = mad(av.x, bv, s0);
			s1 = mad(av.y, bv, s1);
			s2 = mad(av.z, bv, s2);
			s3 = mad(av.w, bv, s3);
		}
		barrier(CLK_LOCAL_MEM_FENCE);
		a += 4;
		b += 16 * columns;
	}
	c += (get_group_id(1) * 32 + 4 * ly) * columns + get_group_id(0) * 8 + lx;
	c[0] = s0;
	c[columns] = s1;
	c[2 * columns] = s2;
	c[3 * columns] = s3;
}

// 3 x 3 convolution of an image that has a border: image[channel][height + 2][width + 4], weights[channel][3][3][output],
// out[output][height][width]; width and outputs are multiples of 4. A thread makes four outputs of four neighbouring
// pixels.
kernel __attribute__((reqd_work_group_size(2, 8, 4))) void convolution(global const float4 *image,
								       global const float4 *weights, global float4 *out,
								       int channels, int outputs, int width, int height)
{
	int x = get_global_id(0), y = get_global_id(1), o = get_global_id(2);
	int line = width / 4 + 1, taps = outputs / 4;
	float4 s0 = 0, s1 = 0, s2 = 0, s3 = 0;

	image += y * line + x;
	weights += o;
	for (int c = 0; c < channels; c++) {
		global const float4 *row = image;
		for (int j = 0; j < 3; j++) {
			float4 left = row[0], right = row[1];
			float4 w0 = weights[0], w1 = weights[taps], w2 = weights[2 * taps];
			s0 = mad(left.x, w0, mad(left.y, w1, mad(left.z, w2, s0)));
			s1 = mad(left.y, w0, mad(left.z, w1, mad(left.w, w2, s1)));
			s2 = mad(left.z, w0, mad(left.w, w1, mad(right.x, w2, s2)));
			s3 = mad(left.w, w0, mad(right.x, w1, mad(right.y, w2, s3)));
			row += line;
			weights += 3 * taps;
		}
		image += line * (height + 2);
	}
	out += (4 * o * height + y) * width / 4 + x;
	out[0] = (float4)(s0.x, s1.x, s2.x, s3.x);
	out[width * height / 4] = (float4)(s0.y, s1.y, s2.y, s3.y);
	out[2 * width * height / 4] = (float4)(s0.z, s1.z, s2.z, s3.z);
	out[3 * width * height / 4] = (float4)(s0.w, s1.w, s2.w, s3.w);
}

// Softmax of each row; a work group per row.
kernel __attribute__((reqd_work_group_size(64, 1, 1))) void softmax(global const float *in, global float *out, int columns)
{
	local float part[64];
	int lane = get_local_id(0);
	in += get_group_id(0) * columns;
	out += get_group_id(0) * columns;

	float largest = -INFINITY;
	for (int i = lane; i < columns; i += 64)
		largest = fmax(largest, in[i]);
	part[lane] = largest;
	barrier(CLK_LOCAL_MEM_FENCE);
	for (int step = 32; step > 0; step /= 2) {
		if (lane < step)
			part[lane] = fmax(part[lane], part[lane + step]);
		barrier(CLK_LOCAL_MEM_FENCE);
	}
	largest = part[0];
	barrier(CLK_LOCAL_MEM_FENCE);

	float sum = 0;
	for (int i = lane; i < columns; i += 64) {
		float e = native_exp(in[i] - largest);
		out[i] = e;
		sum += e;
	}
	part[lane] = sum;
	barrier(CLK_LOCAL_MEM_FENCE);
	for (int step = 32; step > 0; step /= 2) {
		if (lane < step)
			part[lane] += part[lane + step];
		barrier(CLK_LOCAL_MEM_FENCE);
	}
	float scale = 1.0f / part[0];
	for (int i = lane; i < columns; i += 64)
		out[i] *= scale;
}

kernel __attribute__((reqd_work_group_size(64, 1, 1))) void add(global const float *a, global const float *b, global float *c)
{
	size_t i = get_global_id(0);
	c[i] = a[i] + b[i];
}
