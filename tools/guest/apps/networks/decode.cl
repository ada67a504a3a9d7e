/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A transformer decoder that writes one character after the other: one step, from the token before to the next one. Its keys and values
 * go to a cache, a ring of PLACES positions. With -DARGUMENT the place is an argument of the kernels; else it lies in a buffer. */

#define TOKENS 29
#define WIDTH 64
#define HEADS 4
#define HEAD 16
#define INNER 256
#define PLACES 128

#ifdef ARGUMENT
#define PLACE int place
#define GIVEN place
#else
#define PLACE global const int *place
#define GIVEN place[0]
#endif

/* The product of two rows: four sums, so that additions need not wait for each other. */
static float product(global const float *a, global const float *b, int count)
{
	float4 sum = 0;
	for (int i = 0; i < count; i += 4)
		sum = fma(vload4(0, a + i), vload4(0, b + i), sum);
	return sum.x + sum.y + sum.z + sum.w;
}

/* What a state is divided by before a product. */
static float size(global const float *x)
{
	return sqrt(product(x, x, WIDTH) / WIDTH + 1e-5f);
}

/* The state of a token: that which is forced, or else the network's own. */
kernel void embed(global const float *table, global const int *token, global const int *forced, global float *x)
{
	int at = get_global_id(0);
	x[at] = table[(forced[0] >= 0 ? forced[0] : token[0]) * WIDTH + at];
}

/* Query, key and value; the last two go to this position's place in the cache. */
kernel void attend(global const float *attention, global const float *x, PLACE, global float *query,
		   global float *keys, global float *values)
{
	int row = get_global_id(0), part = row / WIDTH, at = row % WIDTH;
	float sum = product(attention + row * WIDTH, x, WIDTH) / size(x);
	if (part == 0)
		query[at] = sum;
	else if (part == 1)
		keys[GIVEN * WIDTH + at] = sum;
	else
		values[GIVEN * WIDTH + at] = sum;
}

/* How much each head looks at each place of the cache. */
kernel void look(global const float *query, global const float *keys, global const float *distance, PLACE,
		 global float *score)
{
	int at = get_global_id(0), head = get_global_id(1), back = (GIVEN - at + PLACES) % PLACES;
	float sum = product(query + head * HEAD, keys + at * WIDTH + head * HEAD, HEAD);
	score[head * PLACES + at] = fma(sum, 0.25f, distance[head * PLACES + back]);
}

/* The mean of the values, as the heads look at them; what the mask does not name does not count. */
kernel void gather(global const float *score, global const float *values, global const uchar *mask, global float *seen)
{
	int at = get_global_id(0);
	global const float *row = score + at / HEAD * PLACES;
	float largest = -INFINITY, all = 0, sum = 0;
	for (int place = 0; place < PLACES; place++)
		largest = mask[place] ? fmax(largest, row[place]) : largest;
	for (int place = 0; place < PLACES; place++) {
		float power = mask[place] ? exp(row[place] - largest) : 0;
		all += power;
		sum = fma(power, values[place * WIDTH + at], sum);
	}
	seen[at] = sum / all;
}

/* Adds a product to the state: each work-item has its own element. */
kernel void add(global const float *matrix, global const float *in, global float *x, int count)
{
	int at = get_global_id(0);
	x[at] += product(matrix + at * count, in, count);
}

kernel void expand(global const float *matrix, global const float *x, global float *inner)
{
	int at = get_global_id(0);
	inner[at] = fmax(product(matrix + at * WIDTH, x, WIDTH) / size(x), 0.0f);
}

kernel void scores(global const float *output, global const float *x, global float *score)
{
	int row = get_global_id(0);
	score[row] = product(output + row * WIDTH, x, WIDTH) / size(x);
}

/* The first of the largest scores is the next token. */
kernel void choose(global const float *score, global const uchar *alphabet, global int *token, global uchar *character)
{
	int best = 0;
	for (int at = 1; at < TOKENS; at++)
		best = score[at] > score[best] ? at : best;
	token[get_global_id(0)] = best;
	character[get_global_id(0)] = alphabet[best];
}
