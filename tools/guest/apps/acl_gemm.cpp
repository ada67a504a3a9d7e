// SPDX-License-Identifier: MIT OR Apache-2.0
// out = a x b with Arm Compute Library's CLGEMM, float32.
//
// acl_gemm --a a.npy --b b.npy --out out.npy        (a: M x K, b: K x N; b is taken as constant weights)
#include <arm_compute/runtime/CL/functions/CLGEMM.h>

#include "acl.hpp"

using namespace arm_compute;

int main(int argc, char **argv)
try {
	const char *usage = "acl_gemm --a a.npy --b b.npy --out out.npy";
	size_t a_shape[2] = {0, 0};
	const npy a = npy_read_shape(acl::option(argc, argv, "--a", usage).c_str(), 'f', 2, a_shape);
	size_t b_shape[2] = {a_shape[1], 0};
	const npy b = npy_read_shape(acl::option(argc, argv, "--b", usage).c_str(), 'f', 2, b_shape);
	const std::string out = acl::option(argc, argv, "--out", usage);
	const size_t m = a_shape[0], k = a_shape[1], n = b_shape[1];

	CLScheduler::get().default_init();
	CLTensor left, right, product;
	left.allocator()->init(TensorInfo(acl::shape({m, k}), 1, DataType::F32));
	right.allocator()->init(TensorInfo(acl::shape({k, n}), 1, DataType::F32));
	product.allocator()->init(TensorInfo(acl::shape({m, n}), 1, DataType::F32));
	acl::require(CLGEMM::validate(left.info(), right.info(), nullptr, product.info(), 1.f, 0.f), "CLGEMM");
	CLGEMM gemm;
	gemm.configure(&left, &right, nullptr, &product, 1.f, 0.f);
	for (CLTensor *tensor : {&left, &right, &product})
		tensor->allocator()->allocate();
	acl::upload(left, a);
	acl::upload(right, b);
	gemm.run();
	CLScheduler::get().sync();
	acl::download(product, {m, n}, out);
	return 0;
} catch (const std::exception &error) {
	std::fprintf(stderr, "acl_gemm: %s\n", error.what());
	return 1;
}
