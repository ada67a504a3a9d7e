// SPDX-License-Identifier: MIT OR Apache-2.0
// A caller of ViennaCL: the product of a matrix that is always the same with a vector of 32 numbers.
#define VIENNACL_WITH_OPENCL
#include <viennacl/linalg/prod.hpp>
#include <viennacl/matrix.hpp>
#include <viennacl/vector.hpp>
#include <cstdio>
#include <vector>

int main(int, char **words)
{
	const int side = 32;
	std::vector<float> v(side), y(side);
	std::vector<std::vector<float>> a(side, std::vector<float>(side));
	for (int i = 0; i < side; i++)
		for (int j = 0; j < side; j++)
			a[i][j] = (float)((7 * i + 3 * j) % 16) / 8;
	FILE *file = fopen(words[1], "rb");
	if (!file || fread(v.data(), sizeof(float), side, file) != (size_t)side)
		return 1;
	viennacl::matrix<float> A(side, side);
	viennacl::vector<float> V(side), Y(side);
	viennacl::copy(a, A);
	viennacl::copy(v, V);
	Y = viennacl::linalg::prod(A, V);
	viennacl::copy(Y, y);
	file = fopen(words[2], "wb");
	return !file || fwrite(y.data(), sizeof(float), side, file) != (size_t)side || fclose(file);
}
