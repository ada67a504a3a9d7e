// SPDX-License-Identifier: MIT OR Apache-2.0
// A convolution with bias by Arm Compute Library's CLConvolutionLayer: float32, NHWC, one image.
//
// acl_conv --x x.npy --w w.npy --bias bias.npy --out out.npy [--stride 1] [--pad 1]
//     x: H x W x C,  w: O x KH x KW x C,  bias: O,  out: H' x W' x O
#include <arm_compute/runtime/CL/functions/CLConvolutionLayer.h>

#include "acl.hpp"

using namespace arm_compute;

int main(int argc, char **argv)
try {
	const char *usage =
		"acl_conv --x x.npy --w w.npy --bias bias.npy --out out.npy [--stride 1] [--pad 1]";
	size_t image[3] = {0, 0, 0};
	const npy x = npy_read_shape(acl::option(argc, argv, "--x", usage).c_str(), 'f', 3, image);
	size_t kernel[4] = {0, 0, 0, image[2]};
	const npy w = npy_read_shape(acl::option(argc, argv, "--w", usage).c_str(), 'f', 4, kernel);
	size_t channels[1] = {kernel[0]};
	const npy bias = npy_read_shape(acl::option(argc, argv, "--bias", usage).c_str(), 'f', 1, channels);
	const std::string out = acl::option(argc, argv, "--out", usage);
	const size_t stride = std::stoul(acl::option(argc, argv, "--stride", usage, "1"));
	const size_t pad = std::stoul(acl::option(argc, argv, "--pad", usage, "1"));
	if (!stride || image[0] + 2 * pad < kernel[1] || image[1] + 2 * pad < kernel[2]) {
		std::fprintf(stderr, "acl_conv: the kernel does not fit into the padded image\n");
		return 2;
	}
	const size_t height = (image[0] + 2 * pad - kernel[1]) / stride + 1;
	const size_t width = (image[1] + 2 * pad - kernel[2]) / stride + 1;

	CLScheduler::get().default_init();
	const auto nhwc = [](const std::vector<size_t> &numpy) {
		return TensorInfo(acl::shape(numpy), 1, DataType::F32, DataLayout::NHWC);
	};
	CLTensor input, weights, biases, output;
	input.allocator()->init(nhwc({image[0], image[1], image[2]}));
	weights.allocator()->init(nhwc({kernel[0], kernel[1], kernel[2], kernel[3]}));
	biases.allocator()->init(TensorInfo(acl::shape({channels[0]}), 1, DataType::F32));
	output.allocator()->init(nhwc({height, width, kernel[0]}));
	const PadStrideInfo geometry(stride, stride, pad, pad);
	acl::require(CLConvolutionLayer::validate(input.info(), weights.info(), biases.info(), output.info(), geometry),
		     "CLConvolutionLayer");
	CLConvolutionLayer convolution;
	convolution.configure(&input, &weights, &biases, &output, geometry);
	for (CLTensor *tensor : {&input, &weights, &biases, &output})
		tensor->allocator()->allocate();
	acl::upload(input, x);
	acl::upload(weights, w);
	acl::upload(biases, bias);
	convolution.run();
	CLScheduler::get().sync();
	acl::download(output, {height, width, kernel[0]}, out);
	return 0;
} catch (const std::exception &error) {
	std::fprintf(stderr, "acl_conv: %s\n", error.what());
	return 1;
}
