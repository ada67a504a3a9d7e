// SPDX-License-Identifier: MIT OR Apache-2.0
// Kernels of the kinds that neural networks are made of.

kernel void convolution(global const float *image, global const float *weights, global float *out, int width,
			int height, int channels)
{
	int x = get_global_id(0), y = get_global_id(1), o = get_global_id(2);
	float sum = 0;
	for (int c = 0; c < channels; c++)
		for (int j = 0; j < 3; j++)
			for (int i = 0; i < 3; i++) {
				int xx = x + i - 1, yy = y + j - 1;
				if (xx < 0 || yy < 0 || xx >= width || yy >= height)
					continue;
				sum = fma(image[(c * height + yy) * width + xx], weights[((o * channels + c) * 3 + j) * 3 + i], sum);
			}
	out[(o * height + y) * width + x] = fmax(sum, 0.0f);
}

kernel void matrix_product(global const float *a, global const float *b, global float *c, int depth, int columns)
{
	int x = 4 * get_global_id(0), y = get_global_id(1);
	float4 sum = 0;
	for (int k = 0; k < depth; k++)
		sum = fma((float4)(a[y * depth + k]), vload4(0, b + k * columns + x), sum);
	vstore4(sum, 0, c + y * columns + x);
}

kernel void tiled_product(global const float *a, global const float *b, global float *c, int size)
{
	local float tile_a[8][8], tile_b[8][8];
	int lx = get_local_id(0), ly = get_local_id(1), x = get_global_id(0), y = get_global_id(1);
	float sum = 0;
	for (int t = 0; t < size; t += 8) {
		tile_a[ly][lx] = a[y * size + t + lx];
		tile_b[ly][lx] = b[(t + ly) * size + x];
		barrier(CLK_LOCAL_MEM_FENCE);
		for (int k = 0; k < 8; k++)
			sum = fma(tile_a[ly][k], tile_b[k][lx], sum);
		barrier(CLK_LOCAL_MEM_FENCE);
	}
	c[y * size + x] = sum;
}

kernel void max_pool(global const float *image, global float *out, int width)
{
	int x = get_global_id(0), y = get_global_id(1);
	float best = -INFINITY;
	for (int j = 0; j < 2; j++)
		for (int i = 0; i < 2; i++)
			best = fmax(best, image[(2 * y + j) * width + 2 * x + i]);
	out[y * (width / 2) + x] = best;
}

kernel void soft_max(global const float *in, global float *out, int count)
{
	global const float *row = in + get_global_id(0) * count;
	float best = -MAXFLOAT, sum = 0;
	for (int i = 0; i < count; i++)
		best = fmax(best, row[i]);
	for (int i = 0; i < count; i++)
		sum += exp(row[i] - best);
	for (int i = 0; i < count; i++)
		out[get_global_id(0) * count + i] = exp(row[i] - best) / sum;
}

kernel void activations(global const float4 *in, global float4 *out)
{
	size_t i = get_global_id(0);
	float4 x = in[i];
	float4 swish = x / (1.0f + exp(-x));
	float4 leaky = select(0.05f * x, x, x > 0.0f);
	out[i] = swish + leaky + tanh(x) + clamp(x, 0.0f, 3.0f);
}

kernel void byte_product(global const uchar *a, global const char *b, global int *c, int depth)
{
	int x = get_global_id(0), y = get_global_id(1), columns = get_global_size(0), sum = 0;
	for (int k = 0; k < depth; k++)
		sum += (int)a[y * depth + k] * (int)b[k * columns + x];
	c[y * columns + x] = sum;
}

kernel void batch_norm(global const float *in, global float *out, global const float *mean,
		       global const float *variance, int plane)
{
	size_t i = get_global_id(0);
	int channel = i / plane;
	out[i] = (in[i] - mean[channel]) * rsqrt(variance[channel] + 1e-3f);
}
