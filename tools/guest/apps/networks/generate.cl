/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A gated recurrent unit that writes one character after the other: one step, from the token before to the next one. */

#define HIDDEN 192
#define TOKENS 30

/* The recurrent product of one row: four sums, so that additions need not wait for each other. */
static float product(global const float *row, global const float *hidden)
{
	float4 sum = 0;
	for (int i = 0; i < HIDDEN; i += 4)
		sum = fma(vload4(0, row + i), vload4(0, hidden + i), sum);
	return sum.x + sum.y + sum.z + sum.w;
}

/* What the token adds to a row: that which is forced, or else the network's own. */
static float column(global const float *table, global const int *forced, global const int *token, int row)
{
	return table[row * TOKENS + (forced[0] >= 0 ? forced[0] : token[0])];
}

kernel void gates(global const float *table, global const float *recurrent, global const float *bias,
		  global const float *hidden, global const int *token, global const int *forced, global float *gate)
{
	int row = get_global_id(0);
	float sum = column(table, forced, token, row) + product(recurrent + row * HIDDEN, hidden) + bias[row];
	gate[row] = 1 / (1 + exp(-sum));
}

kernel void candidate(global const float *table, global const float *recurrent, global const float *bias,
		      global const float *hidden, global const int *token, global const int *forced,
		      global const float *gate, global float *next)
{
	int at = get_global_id(0), row = 2 * HIDDEN + at;
	float inner = product(recurrent + row * HIDDEN, hidden) + bias[row];
	float c = tanh(fma(gate[HIDDEN + at], inner, column(table, forced, token, row)));
	next[at] = gate[at] * hidden[at] + (1 - gate[at]) * c;
}

/* The state of the next step: only now, because every row of this one reads all of it. */
kernel void keep(global const float *next, global float *hidden)
{
	hidden[get_global_id(0)] = next[get_global_id(0)];
}

kernel void scores(global const float *output, global const float *bias, global const float *hidden,
		   global float *score)
{
	int row = get_global_id(0);
	score[row] = product(output + row * HIDDEN, hidden) + bias[row];
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
