/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Training of the digits network: layers forward and backward, softmax cross-entropy, SGD with momentum.
 *
 * Arrays are images x height x width x channels; weights of convolutions output x 3 x 3 x input, of the fully connected layer output x
 * input. Each work-item computes one element, so that no two write to one place. */

/* 3x3 with a border of one zero, and ReLU; one element of `out` for each work-item. */
kernel void convolve(global const float *in, global const float *weight, global const float *bias, global float *out,
		     int height, int width, int inputs, int outputs)
{
	int o = get_global_id(0), column = get_global_id(1) % width, row = get_global_id(1) / width;
	int image = get_global_id(2);
	float sum = bias[o];
	for (int y = max(row - 1, 0); y < min(row + 2, height); y++)
		for (int x = max(column - 1, 0); x < min(column + 2, width); x++) {
			global const float *from = in + ((image * height + y) * width + x) * inputs;
			global const float *by = weight + ((o * 3 + y - row + 1) * 3 + x - column + 1) * inputs;
			for (int i = 0; i < inputs; i++)
				sum = fma(from[i], by[i], sum);
		}
	out[((image * height + row) * width + column) * outputs + o] = fmax(sum, 0.0f);
}

/* The gradient by a convolution's input, where the input is the output of a ReLU: 0 where that is. */
kernel void convolve_back(global const float *gradient, global const float *weight, global const float *in,
			  global float *out, int height, int width, int inputs, int outputs)
{
	int i = get_global_id(0), column = get_global_id(1) % width, row = get_global_id(1) / width;
	int image = get_global_id(2), at = ((image * height + row) * width + column) * inputs + i;
	float sum = 0;
	for (int y = max(row - 1, 0); y < min(row + 2, height); y++)
		for (int x = max(column - 1, 0); x < min(column + 2, width); x++) {
			global const float *from = gradient + ((image * height + y) * width + x) * outputs;
			global const float *by = weight + ((row - y + 1) * 3 + column - x + 1) * inputs + i;
			for (int o = 0; o < outputs; o++)
				sum = fma(from[o], by[o * 9 * inputs], sum);
		}
	out[at] = in[at] > 0 ? sum : 0;
}

/* The gradient by a convolution's weights; one work-item for each weight. */
kernel void convolve_weight(global const float *gradient, global const float *in, global float *out, int height,
			    int width, int inputs, int outputs, int images)
{
	int i = get_global_id(0), tap = get_global_id(1), o = get_global_id(2);
	int down = tap / 3 - 1, right = tap % 3 - 1;
	float sum = 0;
	for (int image = 0; image < images; image++)
		for (int y = max(-down, 0); y < min(height - down, height); y++)
			for (int x = max(-right, 0); x < min(width - right, width); x++) {
				int to = (image * height + y) * width + x, from = to + down * width + right;
				sum = fma(gradient[to * outputs + o], in[from * inputs + i], sum);
			}
	out[(o * 9 + tap) * inputs + i] = sum;
}

/* The gradient by a bias: the sum over all places. */
kernel void sum_places(global const float *gradient, global float *out, int places, int outputs)
{
	int o = get_global_id(0);
	float sum = 0;
	for (int at = 0; at < places; at++)
		sum += gradient[at * outputs + o];
	out[o] = sum;
}

/* The largest of each 2x2 block. */
kernel void maximum(global const float *in, global float *out, int width, int channels)
{
	int c = get_global_id(0), x = get_global_id(1), y = get_global_id(2);
	global const float *at = in + (y * 2 * width * 2 + x * 2) * channels + c;
	int line = 2 * width * channels;
	out[(y * width + x) * channels + c] = fmax(fmax(at[0], at[channels]), fmax(at[line], at[line + channels]));
}

/* The gradient goes to the first of the largest, and nowhere if that is 0: what is before is a ReLU. */
kernel void maximum_back(global const float *gradient, global const float *in, global const float *largest,
			 global float *out, int width, int channels)
{
	int c = get_global_id(0), x = get_global_id(1), y = get_global_id(2);
	int small = (y * width + x) * channels + c, line = 2 * width * channels;
	int at = (y * 2 * width * 2 + x * 2) * channels + c;
	int places[4] = { at, at + channels, at + line, at + line + channels };
	float value = largest[small], left = value > 0 ? gradient[small] : 0;
	for (int k = 0; k < 4; k++) {
		bool here = in[places[k]] == value;
		out[places[k]] = here ? left : 0;
		left = here ? 0 : left;
	}
}

/* Scores of classes. */
kernel void connect(global const float *in, global const float *weight, global const float *bias, global float *out,
		    int inputs, int outputs)
{
	int o = get_global_id(0), image = get_global_id(1);
	float sum = bias[o];
	for (int i = 0; i < inputs; i++)
		sum = fma(in[image * inputs + i], weight[o * inputs + i], sum);
	out[image * outputs + o] = sum;
}

/* The gradient by the scores of one image, and its loss, both divided by the number of images. */
kernel void cross_entropy(global const float *scores, global const int *labels, global float *error, global float *losses,
			  int classes, int images)
{
	int image = get_global_id(0);
	global const float *score = scores + image * classes;
	float largest = score[0], sum = 0;
	for (int c = 1; c < classes; c++)
		largest = fmax(largest, score[c]);
	for (int c = 0; c < classes; c++)
		sum += exp(score[c] - largest);
	for (int c = 0; c < classes; c++) {
		float p = exp(score[c] - largest) / sum;
		error[image * classes + c] = (p - (c == labels[image] ? 1.0f : 0.0f)) / images;
	}
	losses[image] = (log(sum) - (score[labels[image]] - largest)) / images;
}

/* The loss of the batch. */
kernel void total(global const float *losses, global float *loss, int images)
{
	float sum = 0;
	for (int image = 0; image < images; image++)
		sum += losses[image];
	loss[get_global_id(0)] = sum;
}

kernel void connect_weight(global const float *error, global const float *in, global float *out, int inputs, int outputs,
			   int images)
{
	int i = get_global_id(0), o = get_global_id(1);
	float sum = 0;
	for (int image = 0; image < images; image++)
		sum = fma(error[image * outputs + o], in[image * inputs + i], sum);
	out[o * inputs + i] = sum;
}

kernel void connect_back(global const float *error, global const float *weight, global float *out, int inputs,
			 int outputs)
{
	int i = get_global_id(0), image = get_global_id(1);
	float sum = 0;
	for (int o = 0; o < outputs; o++)
		sum = fma(error[image * outputs + o], weight[o * inputs + i], sum);
	out[image * inputs + i] = sum;
}

/* SGD with momentum. */
kernel void move(global float *weight, global float *velocity, global const float *gradient, global const float *rate,
		 float momentum)
{
	int at = get_global_id(0);
	float v = momentum * velocity[at] - rate[0] * gradient[at];
	velocity[at] = v;
	weight[at] += v;
}
