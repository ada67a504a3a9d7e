/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What training with matrix products of a library needs besides, and besides what is in train_digits.cl.
 *
 * Arrays are images x height x width x channels. A convolution is a product of `columns`, a row of 3x3 neighbours for each place, and weights. */

/* Each place's neighbourhood as a row, with a border of zeros; one element for each work-item. */
kernel void spread(global const float *in, global float *columns, int height, int width, int inputs)
{
	int i = get_global_id(0), tap = get_global_id(1), place = get_global_id(2);
	int y = place / width % height + tap / 3 - 1, x = place % width + tap % 3 - 1;
	bool inside = y >= 0 && y < height && x >= 0 && x < width;
	int from = place + (tap / 3 - 1) * width + tap % 3 - 1;
	columns[(place * 9 + tap) * inputs + i] = inside ? in[from * inputs + i] : 0;
}

/* The gradient by the places, from that by their neighbourhoods. */
kernel void collect(global const float *columns, global float *out, int height, int width, int inputs)
{
	int i = get_global_id(0), place = get_global_id(1);
	int row = place / width % height, column = place % width;
	float sum = 0;
	for (int tap = 0; tap < 9; tap++) {
		int y = row - tap / 3 + 1, x = column - tap % 3 + 1;
		int from = place - (tap / 3 - 1) * width - tap % 3 + 1;
		if (y >= 0 && y < height && x >= 0 && x < width)
			sum += columns[(from * 9 + tap) * inputs + i];
	}
	out[place * inputs + i] = sum;
}

/* Adds the bias; with `rectified`, what is below 0 becomes 0. */
kernel void finish(global float *out, global const float *bias, int outputs, int rectified)
{
	int o = get_global_id(0), at = get_global_id(1) * outputs + o;
	float sum = out[at] + bias[o];
	out[at] = rectified ? fmax(sum, 0.0f) : sum;
}

/* The gradient by what was rectified: 0 where that is. */
kernel void rectify_back(global float *gradient, global const float *out)
{
	int at = get_global_id(0);
	gradient[at] = out[at] > 0 ? gradient[at] : 0;
}
